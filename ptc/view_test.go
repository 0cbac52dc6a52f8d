package ptc_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// through runs a program through a view of the bench's registry.
func (b *bench) through(t *testing.T, view *tools.Registry, code string) string {
	t.Helper()
	root := b.Registry
	b.Registry = view
	defer func() { b.Registry = root }()
	report, result := b.run(t, t.Context(), code)
	if result.Error != nil {
		t.Fatal(result.Error)
	}
	return string(report.Value)
}

func TestAProgramReachesTheToolsOfItsViewOnly(t *testing.T) {
	b := newBench(t)
	shadow := tools.New(tools.Tool{Name: "change", Description: "the view's"},
		func(context.Context, *tools.Call, numbered) (string, error) { return "view", nil })
	view := b.View(tools.Only("look"), tools.With(shadow))
	b.Guard("parent", func(_ context.Context, call tools.Call) error {
		if call.Tool == "look" && strings.Contains(string(call.Args), "13") {
			return errors.New("unlucky")
		}
		return nil
	})
	for _, c := range []struct{ name, code, want string }{
		{"it sees the view's tools", `return Object.keys(tools).sort()`, `["change","look"]`},
		{"a filtered tool is unknown", `try { await tools.fail({n: 1}) } catch (e) { return [e.code, /\bhang\b/.test(e.message)] }`, `["UNKNOWN_TOOL",false]`},
		{"a tool of the view works", `return await tools.look({n: 1})`, `10`},
		{"a replaced tool is the view's", `return await tools.change({n: 1})`, `"view"`},
		{"the parent's guard holds", `try { await tools.look({n: 13}) } catch (e) { return e.code }`, `"DENIED_BY_GUARD"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := b.through(t, view, c.code); got != c.want {
				t.Errorf("value is %s, want %s", got, c.want)
			}
		})
	}
	if got := b.through(t, b.Registry, `return [await tools.change({n: 1}), Object.keys(tools).length]`); got != `[10,4]` {
		t.Errorf("beside the view a program gets %s, want [10,4]", got)
	}
}

func TestTheToolsHashIsThatOfTheView(t *testing.T) {
	b := newBench(t)
	b.through(t, b.Registry, "return 1")
	b.through(t, b.View(), "return 1")
	b.through(t, b.View(tools.Only("look")), "return 1")
	var hashes []string
	for _, e := range b.events(t, session.ProgramStart) {
		hashes = append(hashes, e["tools_hash"].(string))
	}
	if len(hashes) != 3 || hashes[0] != hashes[1] || hashes[1] == hashes[2] {
		t.Errorf("the hashes are %q; want the first two alike, and the narrower view's another", hashes)
	}
}
