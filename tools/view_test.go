package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
)

// saying is a tool whose value is the text.
func saying(name, text string) tools.Tool {
	return tools.New(tools.Tool{Name: name, Description: name},
		func(context.Context, *tools.Call, struct{}) (string, error) { return text, nil })
}

// family is a root registry with the tools a, b, c and run_code.
func family(o *tools.Options) *tools.Registry {
	r := tools.NewRegistry(o)
	for _, name := range []string{"a", "b", "c"} {
		r.Add(saying(name, "root "+name))
	}
	r.AddProgram(saying(tools.RunCode, "ran"))
	return r
}

func namesOf(list []tools.Tool) string {
	var names []string
	for _, t := range list {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

// said is the value of a call without arguments, or its code.
func said(t *testing.T, r *tools.Registry, tool string) string {
	t.Helper()
	result := r.Call(t.Context(), tools.Request{ID: "c1", Tool: tool})
	if result.Error != nil {
		return string(result.Error.Code)
	}
	var text string
	if err := json.Unmarshal(result.Value, &text); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAViewHasTheToolsThatItsOptionsLeave(t *testing.T) {
	root := family(nil)
	for _, c := range []struct {
		name string
		view *tools.Registry
		want string
	}{
		{"no option leaves everything", root.View(), "a b c run_code"},
		{"only some", root.View(tools.Only("a", "c")), "a c run_code"},
		{"only none leaves run_code", root.View(tools.Only()), "run_code"},
		{"only twice leaves what both name", root.View(tools.Only("a", "b"), tools.Only("b", "c")), "b run_code"},
		{"run_code may be named", root.View(tools.Only("a", tools.RunCode)), "a run_code"},
		{"without some", root.View(tools.Without("a"), tools.Without("b")), "c run_code"},
		{"only and without", root.View(tools.Only("a", "b"), tools.Without("b")), "a run_code"},
		{"one more", root.View(tools.Only(), tools.With(saying("d", "view d"))), "d run_code"},
		{"a view of a view", root.View(tools.Without("a")).View(tools.Without("b")), "c run_code"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := namesOf(c.view.Tools()); got != c.want {
				t.Errorf("tools are %q, want %q", got, c.want)
			}
			for _, name := range []string{"a", "b", "c"} {
				called := said(t, c.view, name) == "root "+name
				if called != slices.Contains(strings.Fields(c.want), name) {
					t.Errorf("a call of %s ran: %v", name, called)
				}
			}
		})
	}
	if got := namesOf(root.Tools()); got != "a b c run_code" {
		t.Errorf("the root has %q after its views were made", got)
	}
}

func TestAViewsToolTakesThePlaceOfItsParents(t *testing.T) {
	root := family(nil)
	view := root.View(tools.With(saying("a", "view a")))
	below := view.View(tools.Only("a"))
	if r, v, b := said(t, root, "a"), said(t, view, "a"), said(t, below, "a"); r != "root a" || v != "view a" || b != "view a" {
		t.Errorf("root says %q, view %q, a view of it %q", r, v, b)
	}
	replaced := root.View(tools.Without("b"), tools.With(saying("b", "view b"))).View(tools.With(saying("b", "deeper b")))
	if got := said(t, replaced, "b"); got != "deeper b" {
		t.Errorf("what a view left out and gave anew cannot be replaced below: %q", got)
	}
}

func TestAViewFollowsWhatItsParentGetsLater(t *testing.T) {
	root := family(nil)
	open, narrow := root.View(tools.Without("a")), root.View(tools.Only("a"))
	below := open.View()
	for _, r := range []*tools.Registry{open, narrow, below} {
		r.Tools() // so that something has been derived before
	}
	root.Add(saying("d", "root d"))
	if o, n, b := said(t, open, "d"), said(t, narrow, "d"), said(t, below, "d"); o != "root d" || n != "UNKNOWN_TOOL" || b != "root d" {
		t.Errorf("a later tool is %q in a view without others, %q in one with only others, %q in a view of the first", o, n, b)
	}
	root.Guard("late", func(context.Context, tools.Call) error { return errors.New("closed") })
	if got := said(t, below, "b"); got != "DENIED_BY_GUARD" {
		t.Errorf("a call through a view got %q, want the denial of its root's later guard", got)
	}
}

func TestStagesOfAParentAreOutermost(t *testing.T) {
	var trace []string
	note := func(who string) { trace = append(trace, who) }
	install := func(r *tools.Registry, who string) {
		r.Listen(who, func(_ context.Context, _ tools.Call, next func() tools.Verdict) tools.Verdict {
			note("listener " + who)
			return next()
		})
		r.Guard(who, func(context.Context, tools.Call) error { note("guard " + who); return nil })
		r.Wrap(who, func(next tools.Body) tools.Body {
			return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
				note("wrapper " + who)
				return next(ctx, call)
			}
		})
		r.After(who, func(context.Context, tools.Call, tools.Result) (tools.Amendment, error) {
			note("post " + who)
			return tools.Amendment{}, nil
		})
		r.Observe(who, func(context.Context, tools.Call, tools.Result) { note("observer " + who) })
	}
	root := family(nil)
	view := root.View()
	install(view, "view") // before the root's: order of registration does not matter across the two
	install(root, "root")
	said(t, view, "a")
	want := []string{
		"listener root", "listener view", "guard root", "guard view", "wrapper root", "wrapper view",
		"guard root", "guard view", "post view", "post root", "observer root", "observer view",
	}
	if !slices.Equal(trace, want) {
		t.Errorf("a call through the view ran\n%q, want\n%q", trace, want)
	}
	trace = nil
	said(t, root, "a")
	if slices.ContainsFunc(trace, func(s string) bool { return strings.HasSuffix(s, "view") }) {
		t.Errorf("a call on the root ran %q", trace)
	}
}

func TestAViewHasTheOptionsOfItsRoot(t *testing.T) {
	dir := t.TempDir()
	root := family(&tools.Options{Mode: policy.WorkspaceWrite, Root: dir, Presentation: tools.CodeOnly})
	root.Add(tools.New(tools.Tool{Name: "where", Description: "tells"},
		func(_ context.Context, call *tools.Call, _ struct{}) (string, error) {
			return call.Mode.String() + " " + call.Root, nil
		}))
	view := root.View(tools.Only("where"))
	if got := said(t, view, "where"); got != "UNKNOWN_TOOL" {
		t.Errorf("a direct call got %q although only run_code is offered", got)
	}
	result := view.Call(t.Context(), tools.Request{ID: "c1:1", Tool: "where", Caller: policy.Caller{Kind: policy.Program}})
	if want := `"workspace-write ` + dir + `"`; string(result.Value) != want {
		t.Errorf("the body saw %s (%v), want %s", result.Value, result.Error, want)
	}
}

func TestProgrammersErrorsPanic(t *testing.T) {
	bad := saying("bad", "")
	bad.Input = json.RawMessage(`{"type":"no-such-type"}`)
	for _, c := range []struct {
		name, text string
		do         func(r *tools.Registry)
	}{
		{"a name twice", "registered twice", func(r *tools.Registry) { r.Add(saying("a", "")) }},
		{"a name twice in a view", "registered twice", func(r *tools.Registry) { r.View(tools.With(saying("d", ""), saying("d", ""))) }},
		{"a parent's name added to a view", "registered twice", func(r *tools.Registry) { r.View().Add(saying("a", "")) }},
		{"run_code as an ordinary tool", "reserved", func(r *tools.Registry) { r.Add(saying(tools.RunCode, "")) }},
		{"a program tool with another name", "run_code", func(r *tools.Registry) { r.AddProgram(saying("run", "")) }},
		{"a malformed name", "must match", func(r *tools.Registry) { r.Add(saying("a b", "")) }},
		{"no description", "no description", func(r *tools.Registry) { r.Add(tools.Tool{Name: "x", Handle: saying("x", "").Handle}) }},
		{"no body", "no handler", func(r *tools.Registry) { r.Add(tools.Tool{Name: "x", Description: "x"}) }},
		{"a schema that does not compile", "input schema", func(r *tools.Registry) { r.Add(bad) }},
		{"a schema that does not compile, in a view", "input schema", func(r *tools.Registry) { r.View(tools.With(bad)) }},
		{"only an unknown tool", `"nope"`, func(r *tools.Registry) { r.View(tools.Only("nope")) }},
		{"without an unknown tool", `"nope"`, func(r *tools.Registry) { r.View(tools.Without("nope")) }},
		{"without run_code", "run_code cannot be hidden", func(r *tools.Registry) { r.View(tools.Without(tools.RunCode)) }},
		{"another run_code", "run_code cannot be replaced", func(r *tools.Registry) { r.View(tools.With(saying(tools.RunCode, ""))) }},
		{"run_code registered with a view", "root registry", func(r *tools.Registry) { r.View().AddProgram(saying(tools.RunCode, "")) }},
		{"a hidden tool in a view of a view", "no such tool", func(r *tools.Registry) { r.View(tools.Without("a")).View(tools.Only("a")) }},
		{"the name of a tool hidden by Without", "its parent hides", func(r *tools.Registry) { r.View(tools.Without("a")).View(tools.With(saying("a", ""))) }},
		{"the name of a tool hidden by Only", "its parent hides", func(r *tools.Registry) { r.View(tools.Only("b")).View().View(tools.With(saying("a", ""))) }},
		{"the name of a hidden tool, added later", "its parent hides", func(r *tools.Registry) { r.View(tools.Only("b")).View().Add(saying("a", "")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				text, ok := recover().(string)
				if !ok || !strings.HasPrefix(text, "tools: ") || !strings.Contains(text, c.text) {
					t.Errorf("panicked with %q, want a sentence with %q", text, c.text)
				}
			}()
			c.do(family(nil))
		})
	}
}

// What is offered and what is refused follow from one predicate.
func TestExactlyWhatIsOfferedCanBeCalledDirectly(t *testing.T) {
	for _, c := range []struct {
		name         string
		presentation tools.Presentation
		offered      string
		reach        string
	}{
		{"both", tools.Both, "a b c run_code", ""},
		{"native", tools.Native, "a b c", "programs are switched off"},
		{"code", tools.CodeOnly, "run_code", "await tools["},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := family(&tools.Options{Presentation: c.presentation})
			heard := ""
			root.Listen("listener", func(_ context.Context, call tools.Call, next func() tools.Verdict) tools.Verdict {
				heard = call.Tool
				return next()
			})
			for _, r := range []*tools.Registry{root, root.View()} {
				if got := namesOf(r.Offered()); got != c.offered {
					t.Errorf("offered are %q, want %q", got, c.offered)
				}
				for _, tool := range r.Tools() {
					heard = ""
					offered := slices.Contains(strings.Fields(c.offered), tool.Name)
					result := r.Call(t.Context(), tools.Request{ID: "c1", Tool: tool.Name})
					if offered != (result.Error == nil) || offered != (heard == tool.Name) || offered != r.Offers(tool.Name) {
						t.Errorf("%s: error %v, listener heard %q, Offers %v; want it to be called: %v", tool.Name, result.Error, heard, r.Offers(tool.Name), offered)
					}
					if !offered && (result.Error.Code != tools.UnknownTool || !strings.Contains(result.Error.Message, c.reach)) {
						t.Errorf("%s: %v, want UNKNOWN_TOOL and the way to reach it", tool.Name, result.Error)
					}
				}
			}
		})
	}
}

func TestCallsWithoutASessionHaveTheWorkingDirectoryAsRoot(t *testing.T) {
	dir := t.TempDir()
	want, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if link := filepath.Join(t.TempDir(), "link"); os.Symlink(dir, link) == nil {
		dir = link
	}
	t.Chdir(dir)
	r := tools.NewRegistry(nil)
	r.Add(rootTeller)
	t.Chdir(t.TempDir())
	if got := said(t, r, "root"); got != want {
		t.Errorf("the root is %q, want %q, the canonical name of where the registry was made", got, want)
	}
	t.Chdir(filepath.VolumeName(dir) + string(filepath.Separator))
	r = tools.NewRegistry(nil)
	r.Add(rootTeller)
	if got := said(t, r, "root"); got != "" {
		t.Errorf("the root is %q where no workspace can be", got)
	}
}

var rootTeller = tools.New(tools.Tool{Name: "root", Description: "tells the root"},
	func(_ context.Context, call *tools.Call, _ struct{}) (string, error) { return call.Root, nil })

func BenchmarkCall(b *testing.B) {
	root := family(nil)
	for range 4 {
		root.Listen("next", func(_ context.Context, _ tools.Call, next func() tools.Verdict) tools.Verdict { return next() })
		root.Guard("silent", func(context.Context, tools.Call) error { return nil })
	}
	view := root.View(tools.Only("a"))
	for _, c := range []struct {
		name string
		r    *tools.Registry
	}{{"root", root}, {"view", view}, {"view of a view", view.View()}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.r.Call(b.Context(), tools.Request{ID: "c1", Tool: "a"})
			}
		})
	}
}

func TestCallsOnAViewWhileItsParentChanges(t *testing.T) {
	root := family(nil)
	view := root.View(tools.Without("a")).View()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 50 {
			root.Add(saying(fmt.Sprintf("t%d", i), "t"))
			root.Guard("silent", func(context.Context, tools.Call) error { return nil })
		}
	}()
	for range 50 {
		if a, b := said(t, view, "a"), said(t, view, "b"); a != "UNKNOWN_TOOL" || b != "root b" {
			t.Fatalf("a is %q and b is %q while the root changes", a, b)
		}
	}
	<-done
	if got := said(t, view, "t49"); got != "t" {
		t.Errorf("the last tool of the root is %q", got)
	}
}
