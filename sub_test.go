package dsh_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-run/dsh"
	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

func TestASubSessionMayDoWhatItsParentMayOrLess(t *testing.T) {
	wide := policy.DangerFullAccess
	parent := open(t, dsh.Options{Dir: t.TempDir(), Mode: policy.WorkspaceWrite, Approval: policy.Ask, Temporary: true, Engine: runtime.NewInProcess()})
	for _, c := range []struct {
		name string
		o    dsh.SubOptions
		want policy.State
	}{
		{"nothing said: the parent's mode, and nobody is asked", dsh.SubOptions{}, policy.State{Mode: policy.WorkspaceWrite, Approval: policy.Never}},
		{"a wider mode is the parent's", dsh.SubOptions{Mode: &wide}, policy.State{Mode: policy.WorkspaceWrite, Approval: policy.Never}},
		{"a narrower mode is taken", dsh.SubOptions{Mode: new(policy.Mode)}, policy.State{Mode: policy.ReadOnly, Approval: policy.Never}},
		{"asking is taken where the parent asks", dsh.SubOptions{Approval: policy.Ask}, policy.State{Mode: policy.WorkspaceWrite, Approval: policy.Ask}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Temporary = true
			sub, err := parent.Sub(t.Context(), &c.o)
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Close()
			got := sub.Permissions().State()
			if got.Mode != c.want.Mode || got.Approval != c.want.Approval || !got.Fixed || got.Root != parent.Permissions().State().Root {
				t.Errorf("its state is %+v, want %+v, fixed, in the parent's workspace", got, c.want)
			}
			if err := sub.Permissions().SetMode(policy.DangerFullAccess, "test"); err == nil {
				t.Error("its mode could be changed")
			}
		})
	}
}

func TestASubSessionHasAViewALogAndItsOwnIds(t *testing.T) {
	parent := open(t, dsh.Options{Dir: t.TempDir(), Temporary: true, Engine: runtime.NewInProcess()})
	parent.Registry.Guard("veto", func(_ context.Context, call tools.Call) error {
		if strings.Contains(string(call.Args), "secret") {
			return errors.New("not that one")
		}
		return nil
	})
	path := filepath.Join(t.TempDir(), "sub.jsonl")
	sub, err := parent.Sub(t.Context(), &dsh.SubOptions{Log: path, View: []tools.ViewOption{tools.Only("read", "glob")}})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if r := sub.Call(t.Context(), "glob", map[string]string{"pattern": "*"}); r.Error != nil || r.Meta.CallID != "c1" {
		t.Errorf("glob gave %+v", r)
	}
	if r := sub.Call(t.Context(), "grep", map[string]string{"pattern": "x"}); r.Error == nil || r.Error.Code != tools.UnknownTool {
		t.Errorf("a tool outside of the view gave %+v", r)
	}
	if r := sub.Call(t.Context(), "read", map[string]string{"file_path": "secret"}); r.Error == nil || r.Error.Code != tools.DeniedByGuard {
		t.Errorf("what the parent's guard vetoes gave %+v", r)
	}
	report, err := sub.Run(t.Context(), `return Object.keys(tools)`, nil)
	if err != nil || string(report.Value) != `["glob","read"]` {
		t.Errorf("a program of it sees %s, %v", report.Value, err)
	}
	header, err := session.ReadHeader(path)
	if err != nil || header.Parent == nil || !header.Parent.Sub || header.Parent.ID != parent.Log().ID() {
		t.Errorf("its log begins with %+v, %v", header, err)
	}
}

func TestClosingAParentEndsItsSubSessions(t *testing.T) {
	parent := open(t, dsh.Options{Dir: t.TempDir(), Temporary: true, Engine: runtime.NewInProcess()})
	sub, err := parent.Sub(context.Background(), &dsh.SubOptions{Temporary: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Close(); err != nil {
		t.Fatal(err)
	}
	if r := sub.Call(t.Context(), "glob", map[string]string{"pattern": "*"}); r.Error == nil || r.Error.Code != tools.AbortedBeforeDispatch {
		t.Errorf("a call after the end gave %+v", r)
	}
	if _, err := sub.Log().Append(session.ProgramLog, nil); !errors.Is(err, session.ErrClosed) {
		t.Errorf("its log took an event after the end: %v", err)
	}
	if _, err := parent.Sub(t.Context(), nil); !errors.Is(err, dsh.ErrClosed) {
		t.Errorf("a closed session started another: %v", err)
	}
}
