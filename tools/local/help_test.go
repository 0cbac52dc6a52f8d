package local_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/sandbox"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

// bench is a registry with the tools of a set, a session and its workspace.
type bench struct {
	*tools.Registry
	t       *testing.T
	set     *local.Set
	session *tools.Session
	dir     string // the workspace
}

// newBench makes a workspace outside of the directories that workspace-write
// adds to it.
func newBench(t *testing.T, mode policy.Mode) *bench {
	t.Helper()
	base := outside(t)
	dir := filepath.Join(base, "work")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	log, err := session.Create(filepath.Join(base, "s.jsonl"), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	permissions, err := policy.Begin(log, mode, policy.Ask, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, dir: dir, set: local.New(&local.Options{Chain: landlockOnly()})}
	t.Cleanup(b.set.Close)
	if b.session, err = tools.NewSession(permissions); err != nil {
		t.Fatal(err)
	}
	b.Registry = tools.NewRegistry(nil)
	for _, tool := range b.set.Tools() {
		b.Add(tool)
	}
	return b
}

// landlockOnly pins the backend where a test tells what it does; bubblewrap
// numbers processes anew and may be installed or not.
func landlockOnly() sandbox.Chain {
	if slices.Contains(sandbox.Backends(), "landlock") {
		return sandbox.Chain{Backends: []string{"landlock"}}
	}
	return sandbox.Chain{}
}

// outside returns a canonical directory that no mode makes writable by itself.
func outside(t *testing.T) string {
	t.Helper()
	parent := "/var/tmp"
	if _, err := os.Stat(parent); err != nil {
		parent, _ = os.UserCacheDir()
	}
	dir, err := os.MkdirTemp(parent, "dsh-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

type object map[string]any

func (b *bench) call(tool string, args object) tools.Result {
	return b.callAs(b.t.Context(), policy.Direct, tool, args)
}

func (b *bench) callAs(ctx context.Context, kind policy.CallerKind, tool string, args object) tools.Result {
	b.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.Call(ctx, tools.Request{Tool: tool, Args: raw, Session: b.session, Caller: policy.Caller{Kind: kind}})
}

// ok makes a call that must succeed and returns its value.
func (b *bench) ok(tool string, args object) object {
	b.t.Helper()
	return b.value(b.call(tool, args))
}

func (b *bench) value(r tools.Result) object {
	b.t.Helper()
	if r.Error != nil {
		b.t.Fatalf("unexpected error %v", r.Error)
	}
	var value object
	if err := json.Unmarshal(r.Value, &value); err != nil {
		b.t.Fatal(err)
	}
	return value
}

// fails makes a call that must fail with the code and a message that holds
// every text.
func (b *bench) fails(code tools.Code, tool string, args object, texts ...string) tools.Result {
	b.t.Helper()
	r := b.call(tool, args)
	if r.Error == nil || r.Error.Code != code {
		b.t.Fatalf("%s %v: error %v, value %.300s; want %s", tool, args, r.Error, r.Value, code)
	}
	for _, text := range texts {
		if !strings.Contains(r.Error.Message, text) {
			b.t.Fatalf("message %q, want it to say %q", r.Error.Message, text)
		}
	}
	return r
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// put writes a file of the workspace, behind the tools' back.
func (b *bench) put(name, content string) string {
	b.t.Helper()
	path := b.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return path
}

// has checks the bytes of a file of the workspace.
func (b *bench) has(name, want string) {
	b.t.Helper()
	got, err := os.ReadFile(b.path(name))
	if err != nil || string(got) != want {
		b.t.Fatalf("%s holds %.200q (%v), want %.200q", name, got, err, want)
	}
}

// text is what a model sees of a result.
func text(r tools.Result) string {
	var all strings.Builder
	for _, c := range r.Content {
		all.WriteString(c.Text)
	}
	return all.String()
}

// events returns the data of the log's events of one type.
func (b *bench) events(want session.Type) (list []json.RawMessage) {
	b.t.Helper()
	err := session.Read(b.session.Log().Path(), func(e session.Event) bool {
		if e.Type == want {
			list = append(list, e.Data)
		}
		return true
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}
