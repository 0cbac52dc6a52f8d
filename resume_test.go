package dsh_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dsh-run/dsh"
	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// ended is the log of a session that has done something, and its workspace.
func ended(t *testing.T) (log, work string) {
	t.Helper()
	work, log = t.TempDir(), filepath.Join(outside(t), "s.jsonl")
	if err := os.WriteFile(filepath.Join(work, "file.txt"), []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dsh.Options{Dir: work, Log: log, Mode: policy.WorkspaceWrite, Approval: policy.Ask, Engine: runtime.NewInProcess()})
	if r := s.Call(t.Context(), "read", map[string]string{"file_path": "file.txt"}); r.Error != nil {
		t.Fatal(r.Error)
	}
	if err := s.Permissions().SetMode(policy.ReadOnly, "user"); err != nil {
		t.Fatal(err)
	}
	if err := s.Permissions().SetMode(policy.WorkspaceWrite, "user"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return log, work
}

// outside is a directory that workspace-write does not open.
func outside(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "dsh-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestAResumedSessionGoesOnWithWhatItsLogSays(t *testing.T) {
	needKernel(t)
	log, work := ended(t)
	s := open(t, dsh.Options{Resume: log, Engine: runtime.NewInProcess()})
	state := s.Permissions().State()
	if state.Mode != policy.WorkspaceWrite || state.Approval != policy.Ask || state.Preset != "workspace-write" {
		t.Errorf("it goes on with %+v", state)
	}
	// It knows the file that its earlier process read.
	r := s.Call(t.Context(), "edit", map[string]string{"file_path": "file.txt", "old_string": "text", "new_string": "more"})
	if r.Error != nil || r.Meta.CallID != "c2" {
		t.Errorf("the edit ended as %+v", r)
	}
	if got, _ := os.ReadFile(filepath.Join(work, "file.txt")); string(got) != "more\n" {
		t.Errorf("the file holds %q", got)
	}
	if repairs := s.Repairs(); len(repairs.Calls)+len(repairs.Jobs)+len(repairs.Execs) > 0 {
		t.Errorf("a log that was closed in order was repaired: %+v", repairs)
	}
}

func TestAForkGoesOnFromItsEvent(t *testing.T) {
	log, work := ended(t)
	fork := filepath.Join(outside(t), "fork.jsonl")
	var narrowed uint64
	err := session.Read(log, func(e session.Event) bool {
		if e.Type == session.SandboxMode {
			narrowed = e.Seq
		}
		return narrowed == 0 || e.Seq < narrowed || string(e.Data) != `{"value":"read-only","by":"user"}`
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Fork(log, narrowed, fork); err != nil {
		t.Fatal(err)
	}
	s := open(t, dsh.Options{Resume: fork, Dir: work, Engine: runtime.NewInProcess()})
	if state := s.Permissions().State(); state.Mode != policy.ReadOnly || state.Fixed {
		t.Errorf("the fork goes on with %+v, want the mode at its event", state)
	}
	if err := s.Permissions().SetMode(policy.WorkspaceWrite, "user"); err != nil {
		t.Errorf("the modes of a fork can be changed: %v", err)
	}
}

func TestWhatAnEarlierProcessLeftOpenIsClosed(t *testing.T) {
	log, _ := ended(t)
	l, err := session.Open(log, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		t    session.Type
		data any
	}{
		{session.ToolCall, map[string]any{"call_id": "c2", "root_id": "c2", "tool": "bash", "args": map[string]string{"command": "true"}}},
		{session.ToolCall, map[string]any{"call_id": "c3", "root_id": "c3", "tool": "bash", "args": map[string]string{"command": "make"}}},
		{session.ToolStarted, map[string]any{"call_id": "c3"}},
		{session.ApprovalAsked, map[string]any{"id": "a1", "call_id": "c2", "tool": "bash", "mode": "read-only", "to": "workspace-write"}},
		{session.JobStart, map[string]any{"call_id": "c3", "job_id": "bash-1", "command": "make", "state": "running"}},
		{session.ExecStart, map[string]any{"id": "x4", "argv": []string{"make"}}},
	} {
		if _, err := l.Append(e.t, e.data); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	s := open(t, dsh.Options{Resume: log, Engine: runtime.NewInProcess()})
	repairs := s.Repairs()
	if len(repairs.Calls) != 2 || len(repairs.Jobs) != 1 || len(repairs.Execs) != 1 {
		t.Fatalf("repaired %+v", repairs)
	}
	codes := map[string]tools.Code{}
	for _, c := range repairs.Calls {
		codes[c.CallID] = c.Error.Code
	}
	if codes["c2"] != tools.ToolNotStarted || codes["c3"] != tools.ToolOutcomeUnknown {
		t.Errorf("the calls ended as %v", codes)
	}
	s.Close()
	counts := map[session.Type]int{}
	if err := session.Read(log, func(e session.Event) bool { counts[e.Type]++; return true }); err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]session.Type{
		{session.ToolCall, session.ToolResult}, {session.ApprovalAsked, session.ApprovalDecided},
		{session.JobStart, session.JobEnd}, {session.ExecStart, session.ExecEnd},
	} {
		if counts[pair[0]] != counts[pair[1]] {
			t.Errorf("%d of %s, %d of %s", counts[pair[0]], pair[0], counts[pair[1]], pair[1])
		}
	}
	again := open(t, dsh.Options{Resume: log, Engine: runtime.NewInProcess()})
	if r := again.Repairs(); len(r.Calls)+len(r.Jobs)+len(r.Execs) > 0 {
		t.Errorf("the next time repaired %+v", r)
	}
	if r := again.Call(t.Context(), "glob", map[string]string{"pattern": "*"}); r.Meta.CallID != "c4" {
		t.Errorf("the next call is %s", r.Meta.CallID)
	}
	if _, err := again.Exec(t.Context(), exec.Command("/nowhere")); err == nil {
		t.Error("a command that is not there ran")
	}
}

func TestASessionIsResumedOnlyWhereItBelongs(t *testing.T) {
	log, work := ended(t)
	other := t.TempDir()
	for name, c := range map[string]struct {
		options dsh.Options
		want    any
	}{
		"in another workspace":   {dsh.Options{Resume: log, Dir: other}, new(*dsh.WorkspaceError)},
		"in another log":         {dsh.Options{Resume: log, Log: filepath.Join(other, "new.jsonl")}, nil},
		"without a file":         {dsh.Options{Resume: filepath.Join(other, "none.jsonl")}, new(*os.PathError)},
		"where calls reach it":   {dsh.Options{Resume: copied(t, log, work)}, new(*dsh.ReachError)},
		"while another has it":   {dsh.Options{Resume: held(t, log)}, new(*session.LockedError)},
		"without its workspace":  {dsh.Options{Resume: gone(t)}, new(*policy.RootError)},
		"with a knob gone wrong": {dsh.Options{Resume: spoiled(t)}, new(*session.ReadOnlyError)},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.Engine = runtime.NewInProcess()
			s, err := dsh.Open(t.Context(), &c.options)
			if err == nil {
				s.Close()
				t.Fatal("it was resumed")
			}
			if c.want != nil && !errors.As(err, c.want) {
				t.Errorf("error is %v (%T), want a %T", err, err, c.want)
			}
		})
	}
}

func TestAWiderModeIsRefusedWhereItReachesTheLog(t *testing.T) {
	work := t.TempDir()
	log := filepath.Join(work, "s.jsonl")
	s := open(t, dsh.Options{Dir: work, Log: log, Engine: runtime.NewInProcess()})
	if err := s.Permissions().SetMode(policy.WorkspaceWrite, "user"); !errors.As(err, new(*dsh.ReachError)) {
		t.Errorf("a setter: %v, want a ReachError", err)
	}
	s.Close()
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	turn := func(mode policy.Mode) func(policy.State) (policy.State, error) {
		return func(now policy.State) (policy.State, error) { now.Mode = mode; return now, nil }
	}
	wider := dsh.Options{Resume: log, Engine: runtime.NewInProcess(), Turn: turn(policy.WorkspaceWrite)}
	if _, err := dsh.Open(t.Context(), &wider); !errors.As(err, new(*dsh.ReachError)) {
		t.Errorf("going on: %v, want a ReachError", err)
	}
	if after, err := os.ReadFile(log); err != nil || string(after) != string(before) {
		t.Errorf("the log was changed: %v\n%s", err, after)
	}
	open(t, dsh.Options{Resume: log, Engine: runtime.NewInProcess()})
}

func TestALogThatItsOwnModeReachesGoesOnInANarrowerOne(t *testing.T) {
	log, work := ended(t)
	s := open(t, dsh.Options{Resume: copied(t, log, work), Engine: runtime.NewInProcess(), By: "user",
		Turn: func(now policy.State) (policy.State, error) { now.Mode = policy.ReadOnly; return now, nil }})
	if state := s.Permissions().State(); state.Mode != policy.ReadOnly {
		t.Errorf("it goes on with %+v", state)
	}
}

// copied is a copy of the log inside of its workspace.
func copied(t *testing.T, log, work string) string {
	t.Helper()
	data, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(work, "copy.jsonl")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// held is a fork of the log that is open already.
func held(t *testing.T, log string) string {
	t.Helper()
	path := filepath.Join(outside(t), "held.jsonl")
	if err := session.Fork(log, 4, path); err != nil {
		t.Fatal(err)
	}
	l, err := session.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return path
}

// gone is the log of a session whose workspace has been removed.
func gone(t *testing.T) string {
	t.Helper()
	log, work := ended(t)
	if err := os.RemoveAll(work); err != nil {
		t.Fatal(err)
	}
	return log
}

// spoiled is the log of a session whose last mode is none.
func spoiled(t *testing.T) string {
	t.Helper()
	log, _ := ended(t)
	l, err := session.Open(log, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Append(session.SandboxMode, map[string]string{"value": "everything", "by": "x"}); err != nil {
		t.Fatal(err)
	}
	return log
}
