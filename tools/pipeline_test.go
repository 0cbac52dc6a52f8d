package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// road is a registry with the made-up tool delete_path and a session.
type road struct {
	*tools.Registry
	session *tools.Session
	got     []string // the paths that the body was asked to delete
	cancel  context.CancelFunc
}

type deletion struct {
	Path string `json:"path" jsonschema:"what to delete"`
}

func newRoad(t *testing.T, approval policy.Approval, o *tools.Options) *road {
	t.Helper()
	log, err := session.Create(filepath.Join(t.TempDir(), "s.jsonl"), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	permissions, err := policy.Begin(log, policy.WorkspaceWrite, approval, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := tools.NewSession(permissions)
	if err != nil {
		t.Fatal(err)
	}
	r := &road{Registry: tools.NewRegistry(o), session: s}
	tools.Add(r.Registry, tools.Tool{Name: "delete_path", Description: "deletes"},
		func(_ context.Context, _ *tools.Call, in deletion) (string, error) {
			r.got = append(r.got, in.Path)
			return "deleted " + in.Path, nil
		})
	return r
}

func (r *road) delete(ctx context.Context) tools.Result {
	return r.Call(ctx, tools.Request{Tool: "delete_path", Args: json.RawMessage(`{"path":"/etc/passwd"}`), Session: r.session})
}

// events returns the data of the log's events of one type.
func (r *road) events(t *testing.T, want session.Type) (list []map[string]any) {
	t.Helper()
	err := session.Read(r.session.Log().Path(), func(e session.Event) bool {
		if e.Type == want {
			var data map[string]any
			if err := json.Unmarshal(e.Data, &data); err != nil {
				t.Fatal(err)
			}
			list = append(list, data)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func denyAll(context.Context, tools.Call, func() tools.Verdict) tools.Verdict {
	return tools.Verdict{Judgement: tools.Deny, Reason: "not that path"}
}

func allowAll(context.Context, tools.Call, func() tools.Verdict) tools.Verdict {
	return tools.Verdict{Judgement: tools.Allow}
}

func TestSevenCases(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup func(*road)
		runs  bool
		code  tools.Code
		stage tools.Stage
		text  string
	}{
		{name: "1 nothing registered: runs", setup: func(*road) {}, runs: true},
		{name: "2 an inner listener denies: denied with its reason", setup: func(r *road) {
			r.Listen("inner", denyAll)
		}, code: tools.DeniedByListener, stage: tools.StageListener, text: "not that path"},
		{name: "3 an outer listener allows without calling next: runs", setup: func(r *road) {
			r.Listen("outer", allowAll)
			r.Listen("inner", denyAll)
		}, runs: true},
		{name: "4 the denial is a guard: an outer listener cannot allow it", setup: func(r *road) {
			r.Listen("outer", allowAll)
			r.Guard("veto", func(context.Context, tools.Call) error { return errors.New("never that path") })
		}, code: tools.DeniedByGuard, stage: tools.StageGuard, text: "never that path"},
		{name: "5 a listener changes its copy of the arguments: the body gets what was logged", setup: func(r *road) {
			r.Listen("tamper", func(_ context.Context, call tools.Call, next func() tools.Verdict) tools.Verdict {
				copy(call.Args, `{"path":"/etc/shadow"}`)
				return next()
			})
		}, runs: true},
		{name: "6 a listener asks and there is no approver: denied", setup: func(r *road) {
			r.Listen("asks", func(context.Context, tools.Call, func() tools.Verdict) tools.Verdict {
				return tools.Verdict{Reason: "sure?"}
			})
		}, code: tools.ApprovalUnavailable, stage: tools.StageApproval, text: "no approval service"},
		{name: "7 a listener panics: denied, its text logged, the process alive", setup: func(r *road) {
			r.Listen("broken", func(context.Context, tools.Call, func() tools.Verdict) tools.Verdict { panic("kaboom") })
		}, code: tools.DeniedByListener, stage: tools.StageListener, text: "kaboom"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoad(t, policy.Ask, nil)
			c.setup(r)
			result := r.delete(t.Context())
			calls, results := r.events(t, session.ToolCall), r.events(t, session.ToolResult)
			if len(calls) != 1 || len(results) != 1 {
				t.Fatalf("%d tool/call and %d tool/result, want one of each", len(calls), len(results))
			}
			logged := calls[0]["args"].(map[string]any)["path"]
			if c.runs {
				if result.Error != nil || len(r.got) != 1 || r.got[0] != logged || logged != "/etc/passwd" {
					t.Fatalf("error %v, body got %v, log has %v; want the logged path to be deleted", result.Error, r.got, logged)
				}
				return
			}
			if len(r.got) != 0 {
				t.Fatalf("the body ran with %v", r.got)
			}
			if result.Error == nil || result.Error.Code != c.code || result.Meta.DeniedBy.Stage != c.stage {
				t.Fatalf("error %v by %v, want %s by %s", result.Error, result.Meta.DeniedBy, c.code, c.stage)
			}
			inLog, _ := json.Marshal(results[0])
			if !strings.Contains(result.Content[0].Text, c.text) || !strings.Contains(string(inLog), c.text) {
				t.Fatalf("content %q and log %s, want both to say %q", result.Content, inLog, c.text)
			}
		})
	}
}

func TestMaterialiseRefusesBeforeAnyone(t *testing.T) {
	asked := 0
	for _, c := range []struct {
		name, tool, args string
		code             tools.Code
		text             string
	}{
		{"unknown tool, nearest named", "delete_pth", `{}`, tools.UnknownTool, `did you mean "delete_path"`},
		{"missing argument", "delete_path", `{}`, tools.InvalidArgs, "path is required"},
		{"wrong type", "delete_path", `{"path":3}`, tools.InvalidArgs, "path"},
		{"unknown argument, nearest named", "delete_path", `{"path":"x","pth":1}`, tools.InvalidArgs, `unknown argument "pth"; did you mean "path"`},
		{"widening a tool that nothing confines", "delete_path", `{"path":"x","sandbox_permissions":"read-only"}`, tools.InvalidArgs, "not confined"},
		{"not an object", "delete_path", `[1]`, tools.InvalidArgs, "found an array"},
		{"not JSON", "delete_path", `{"path":`, tools.InvalidArgs, "not JSON"},
		{"invalid UTF-8", "delete_path", "{\"path\":\"\xff\"}", tools.InvalidArgs, "UTF-8"},
		{"too large", "delete_path", `{"path":"` + strings.Repeat("a", 16<<20) + `"}`, tools.ValueTooLarge, "16777216"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoad(t, policy.Ask, nil)
			r.Listen("counts", func(_ context.Context, _ tools.Call, next func() tools.Verdict) tools.Verdict {
				asked++
				return next()
			})
			result := r.Call(t.Context(), tools.Request{Tool: c.tool, Args: json.RawMessage(c.args), Session: r.session})
			if result.Error == nil || result.Error.Code != c.code || !strings.Contains(result.Error.Message, c.text) {
				t.Fatalf("error %v, want %s with %q", result.Error, c.code, c.text)
			}
			if asked != 0 || len(r.got) != 0 {
				t.Fatalf("listener asked %d times, body got %v", asked, r.got)
			}
			if n := len(r.events(t, session.ToolResult)); n != 1 {
				t.Fatalf("%d tool/result, want 1", n)
			}
		})
	}
}

func TestCancellationEndsInOneOfTwoCodes(t *testing.T) {
	t.Run("before the body", func(t *testing.T) {
		r := newRoad(t, policy.Ask, nil)
		ctx, cancel := context.WithCancel(t.Context())
		r.Guard("cancels", func(context.Context, tools.Call) error { cancel(); return nil })
		result := r.delete(ctx)
		if result.Error == nil || result.Error.Code != tools.AbortedBeforeDispatch || len(r.got) != 0 {
			t.Fatalf("error %v, body got %v", result.Error, r.got)
		}
	})
	t.Run("while the body runs, after it stopped", func(t *testing.T) {
		r := newRoad(t, policy.Ask, nil)
		ctx, cancel := context.WithCancel(t.Context())
		stopped := false
		tools.Add(r.Registry, tools.Tool{Name: "wait", Description: "waits"},
			func(ctx context.Context, _ *tools.Call, _ struct{}) (string, error) {
				cancel()
				<-ctx.Done()
				stopped = true
				return "", ctx.Err()
			})
		result := r.Call(ctx, tools.Request{Tool: "wait", Session: r.session})
		if result.Error == nil || result.Error.Code != tools.Aborted || !stopped {
			t.Fatalf("error %v, body stopped: %v", result.Error, stopped)
		}
	})
}

func TestPostExecute(t *testing.T) {
	post := func(a tools.Amendment, err error) tools.Post {
		return func(context.Context, tools.Call, tools.Result) (tools.Amendment, error) { return a, err }
	}
	text := []tools.Content{tools.Text("shown instead")}
	for _, c := range []struct {
		name  string
		post  tools.Post
		guard bool // the call is denied first
		code  tools.Code
		text  string
	}{
		{"accepts", post(tools.Amendment{}, nil), false, "", "deleted /etc/passwd"},
		{"replaces the content", post(tools.Amendment{Content: text}, nil), false, "", "shown instead"},
		{"replaces the value, rendered anew", post(tools.Amendment{Value: json.RawMessage(`"other"`)}, nil), false, "", "other"},
		{"blocks", post(tools.Amendment{Block: "run the tests first"}, nil), false, tools.BlockedByPost, "run the tests first"},
		{"fails", post(tools.Amendment{}, errors.New("broken")), false, tools.ToolFailed, "broken"},
		{"replaces both", post(tools.Amendment{Content: text, Value: json.RawMessage(`"x"`)}, nil), false, tools.ToolFailed, "both"},
		{"gives a value that the schema refuses", post(tools.Amendment{Value: json.RawMessage(`7`)}, nil), false, tools.ToolFailed, "schema"},
		{"cannot turn a denial into a success", post(tools.Amendment{Value: json.RawMessage(`"x"`)}, nil), true, tools.DeniedByGuard, "never"},
		{"panics", func(context.Context, tools.Call, tools.Result) (tools.Amendment, error) { panic("ouch") }, false, tools.ToolFailed, "ouch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoad(t, policy.Ask, nil)
			r.After("step", c.post)
			if c.guard {
				r.Guard("veto", func(context.Context, tools.Call) error { return errors.New("never") })
			}
			result := r.delete(t.Context())
			var code tools.Code
			if result.Error != nil {
				code = result.Error.Code
			}
			if code != c.code || !strings.Contains(result.Content[0].Text, c.text) {
				t.Fatalf("code %q, content %q; want %q and %q", code, result.Content[0].Text, c.code, c.text)
			}
			if (result.Error == nil) != (result.Value != nil) {
				t.Fatalf("value %s and error %v must exclude each other", result.Value, result.Error)
			}
		})
	}
}

func TestOutputThatTheSchemaRefusesIsAFailure(t *testing.T) {
	r := newRoad(t, policy.Ask, nil)
	r.Add(tools.Tool{Name: "lies", Description: "lies", Input: json.RawMessage(`{"type":"object"}`), Output: json.RawMessage(`{"type":"integer"}`),
		Handle: func(context.Context, *tools.Call) (json.RawMessage, error) { return json.RawMessage(`"seven"`), nil }})
	result := r.Call(t.Context(), tools.Request{Tool: "lies", Session: r.session})
	if result.Error == nil || result.Error.Code != tools.InvalidToolOutput {
		t.Fatalf("got %+v, want %s", result.Error, tools.InvalidToolOutput)
	}
}

func TestObserverPanicIsContained(t *testing.T) {
	r := newRoad(t, policy.Ask, &tools.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	seen := 0
	r.Observe("broken", func(context.Context, tools.Call, tools.Result) { panic("oh") })
	r.Observe("counts", func(context.Context, tools.Call, tools.Result) { seen++ })
	if result := r.delete(t.Context()); result.Error != nil || seen != 1 {
		t.Fatalf("error %v, observed %d times", result.Error, seen)
	}
}

func TestUnloggedCallDoesNotRun(t *testing.T) {
	r := newRoad(t, policy.Ask, nil)
	r.session.Log().Close()
	result := r.delete(t.Context())
	if result.Error == nil || result.Error.Code != tools.LogFailed || len(r.got) != 0 {
		t.Fatalf("error %v, body got %v", result.Error, r.got)
	}
}

func TestRootIDsGoOnAfterResume(t *testing.T) {
	r := newRoad(t, policy.Ask, nil)
	if id := r.delete(t.Context()).Meta.CallID; id != "c1" {
		t.Fatalf("first id %q, want c1", id)
	}
	path := r.session.Log().Path()
	r.session.Log().Close()
	log, err := session.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	permissions, err := policy.Resume(log, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.session, err = tools.NewSession(permissions); err != nil {
		t.Fatal(err)
	}
	if id := r.delete(t.Context()).Meta.CallID; id != "c2" {
		t.Fatalf("id after resume %q, want c2", id)
	}
	if s := permissions.State(); s.Mode != policy.WorkspaceWrite || s.Approval != policy.Ask || s.Preset != "workspace-write" {
		t.Fatalf("resumed with %+v", s)
	}
}
