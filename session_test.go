package dsh_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-run/dsh"
	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/sandbox"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/session/sessiontest"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

func needKernel(t *testing.T) {
	t.Helper()
	for _, b := range sandbox.Probe(t.Context(), "").Backends {
		if b.Works && b.Name == "landlock" {
			return
		}
	}
	sessiontest.Need(t, "kernel", false, "no sandbox works here")
}

// open opens a session in a new workspace, in this process where o names no
// engine, and closes it with the test.
func open(t *testing.T, o dsh.Options) *dsh.Session {
	t.Helper()
	if o.Local == nil {
		o.Local = &local.Options{}
	}
	if slices.Contains(sandbox.Backends(), "landlock") {
		// Bubblewrap numbers processes anew and may be installed or not.
		o.Local.Chain = sandbox.Chain{Backends: []string{"landlock"}}
	}
	if o.Dir == "" && o.Resume == "" {
		o.Dir = t.TempDir()
	}
	o.Temporary = o.Log == "" && o.Resume == ""
	s, err := dsh.Open(t.Context(), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestTheExampleSaysWhatItsCommentSays(t *testing.T) {
	needKernel(t)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = write
	Example()
	os.Stdout = stdout
	write.Close()
	got := make([]byte, 1000)
	n, _ := read.Read(got)
	if want := "true \"HELLO!\"\n{\"text\":\"BYE!\"}\nFS_SANDBOX_DENIED\n"; string(got[:n]) != want {
		t.Errorf("the example printed %q, want %q", got[:n], want)
	}
}

func TestAnotherModuleEmbedsTheRuntimeWithoutWiring(t *testing.T) {
	needKernel(t)
	binary := filepath.Join(t.TempDir(), "embed")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", binary, ".")
	build.Dir = filepath.Join("testdata", "embed")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	out, err := exec.Command(binary).CombinedOutput()
	if want := `["Oslo 4","Lisbon 6"] process full` + "\n"; err != nil || string(out) != want {
		t.Errorf("it printed %q, %v; want %q", out, err, want)
	}
}

func TestWhatCannotBeOpenedLeavesNothing(t *testing.T) {
	base := t.TempDir()
	work := filepath.Join(base, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	logPath := filepath.Join(base, "s.jsonl")
	for name, c := range map[string]struct {
		options dsh.Options
		want    any
	}{
		"a missing workspace":            {dsh.Options{Dir: filepath.Join(base, "missing"), Log: logPath}, new(*policy.RootError)},
		"an unknown tool":                {dsh.Options{Dir: work, Log: logPath, Tools: []string{"read", "rm"}}, new(*dsh.UnknownToolsError)},
		"a log inside the workspace":     {dsh.Options{Dir: work, Mode: policy.WorkspaceWrite, Log: filepath.Join(work, "s.jsonl")}, new(*dsh.ReachError)},
		"a log in a folder that is none": {dsh.Options{Dir: work, Log: filepath.Join(base, "none", "s.jsonl")}, new(*session.PlaceError)},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := dsh.Open(t.Context(), &c.options)
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !errors.As(err, c.want) {
				t.Errorf("the error is %T: %v", err, err)
			}
			left, _ := filepath.Glob(filepath.Join(base, "*", "s.*"))
			more, _ := filepath.Glob(filepath.Join(base, "s.*"))
			if len(left)+len(more) > 0 {
				t.Errorf("it left %v %v", left, more)
			}
		})
	}
}

func TestWithoutOptionsNothingIsAllowed(t *testing.T) {
	s := open(t, dsh.Options{})
	state := s.Permissions().State()
	if state.Mode != policy.ReadOnly || state.Approval != policy.Never {
		t.Errorf("a session begins as %+v", state)
	}
	result := s.Call(t.Context(), "write", map[string]string{"file_path": "x", "content": "x"})
	if result.Error == nil || result.Error.Code != "FS_SANDBOX_DENIED" {
		t.Errorf("writing gave %+v", result.Error)
	}
	result = s.Call(t.Context(), "write", map[string]string{
		"file_path": "x", "content": "x", "sandbox_permissions": "workspace-write", "justification": "why not",
	})
	if result.Error == nil || result.Error.Code != tools.ApprovalRejected {
		t.Errorf("widening gave %+v", result.Error)
	}
}

// A call that was widened to a mode in which it could change its own log is
// vetoed, although somebody said yes.
func TestACallThatCouldChangeItsLogIsVetoed(t *testing.T) {
	work := t.TempDir()
	s := open(t, dsh.Options{
		Dir: work, Log: filepath.Join(work, "s.jsonl"), Approval: policy.Ask,
		Answerers: []policy.Answerer{{Name: "yes", Answer: func(context.Context, policy.Question) (policy.Outcome, error) {
			return policy.AllowedOnce, nil
		}}},
	})
	result := s.Call(t.Context(), "write", map[string]string{
		"file_path": "x", "content": "x", "sandbox_permissions": "workspace-write", "justification": "why not",
	})
	if result.Error == nil || result.Error.Code != tools.DeniedByGuard || result.Meta.DeniedBy.Rule != "reach" {
		t.Errorf("the call ended with %+v", result.Error)
	}
	if _, err := os.Stat(filepath.Join(work, "x")); err == nil {
		t.Error("the file was written")
	}
}

func TestCloseEndsCallsAndProcesses(t *testing.T) {
	needKernel(t)
	s := open(t, dsh.Options{Engine: runtime.NewInProcess()})
	pids := filepath.Join(s.Log().TempDir(), "pids")
	var calls sync.WaitGroup
	results := make(chan tools.Result, 2)
	for _, command := range []string{"echo $$ >> $TMPDIR/pids; exec sleep 1000", "(sleep 1000 & echo $! >> $TMPDIR/pids; wait)"} {
		calls.Go(func() {
			results <- s.Call(context.Background(), "bash", map[string]any{"command": command})
		})
	}
	numbers := waitForLines(t, pids, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	calls.Wait()
	for range 2 {
		if r := <-results; r.Error == nil || r.Error.Code != tools.Aborted {
			t.Errorf("a call ended with %+v", r.Error)
		}
	}
	for _, pid := range numbers {
		if runs(pid) {
			t.Errorf("the process %s still runs", pid)
		}
	}
	if r := s.Call(context.Background(), "glob", map[string]string{"pattern": "*"}); r.Error == nil || r.Meta.Started {
		t.Errorf("a closed session answered with %+v", r)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing again gave %v", err)
	}
}

// runs reports whether the process has not ended; whoever inherited it may not
// have reaped it yet.
func runs(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// waitForLines returns the lines of a file once it has so many.
func waitForLines(t *testing.T, path string, n int) []string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if raw, err := os.ReadFile(path); err == nil {
			if lines := strings.Fields(string(raw)); len(lines) == n {
				return lines
			}
		}
	}
	t.Fatalf("%s never had %d lines", path, n)
	return nil
}

func TestASessionEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, err := dsh.Open(ctx, &dsh.Options{Dir: t.TempDir(), Temporary: true, Engine: runtime.NewInProcess()})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.Log().Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary log is still there: %v", err)
	}
	if _, err := s.Run(t.Context(), "return 1", nil); err == nil {
		t.Error("a program ran in a session that has ended")
	}
}

func TestSessionsShareWorkersAndLeaveNone(t *testing.T) {
	needKernel(t)
	var sessions []*dsh.Session
	for range 3 {
		sessions = append(sessions, open(t, dsh.Options{}))
	}
	var runs sync.WaitGroup
	for _, s := range sessions {
		for n := range 5 {
			runs.Go(func() {
				report, err := s.Run(t.Context(), "return "+strconv.Itoa(n), nil)
				if err != nil || string(report.Value) != strconv.Itoa(n) {
					t.Errorf("run %d gave %s, %v, %v", n, report.Value, report.Failure, err)
				}
			})
		}
	}
	runs.Wait()
	for _, s := range sessions {
		s.Close()
	}
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil || len(tasks) == 0 {
		sessiontest.Need(t, "proc", false, "the kernel does not list children")
	}
	for _, task := range tasks {
		if children, err := os.ReadFile(task); err == nil && len(children) > 0 {
			t.Errorf("children are left: %s", children)
		}
	}
}

func TestEverythingAProgramDidIsInTheLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	s := open(t, dsh.Options{Engine: runtime.NewInProcess(), Log: path})
	if _, err := s.Run(t.Context(), `console.log("hi"); await tools.glob({pattern: "*"}); return 1`, nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	var types []string
	err := session.Read(path, func(e session.Event) bool {
		types = append(types, string(e.Type))
		if !json.Valid(e.Data) {
			t.Errorf("the data of event %d is no JSON", e.Seq)
		}
		return true
	})
	want := "session/start sandbox/mode approval/policy tool/call tool/started ptc/start ptc/log tool/call tool/result ptc/end tool/result"
	if got := strings.Join(types, " "); err != nil || got != want {
		t.Errorf("the log has %s, %v\nwant %s", got, err, want)
	}
}

func TestExecRunsInTheWorkspaceAndInTheLog(t *testing.T) {
	needKernel(t)
	work := t.TempDir()
	s := open(t, dsh.Options{Dir: work, Engine: runtime.NewInProcess()})
	var out, stderr strings.Builder
	cmd := exec.Command("sh", "-c", "pwd; touch x")
	cmd.Stdout, cmd.Stderr = &out, &stderr
	end, err := s.Exec(t.Context(), cmd)
	if err != nil || end.ExitCode == 0 || !end.Confinement.Denied || end.Confinement.Path != filepath.Join(work, "x") {
		t.Errorf("it ended with %+v, %v", end, err)
	}
	if strings.TrimSpace(out.String()) != work || !strings.Contains(stderr.String(), "ermission denied") {
		t.Errorf("it wrote %q and %q", out.String(), stderr.String())
	}
	if _, err := s.Exec(t.Context(), exec.Command("no-such-command")); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("a missing command gave %v", err)
	}
	var logged []string
	if err := s.Log().Replay(func(e session.Event) {
		if e.Type == session.ExecStart || e.Type == session.ExecEnd {
			logged = append(logged, string(e.Data))
		}
	}); err != nil {
		t.Fatal(err)
	}
	if len(logged) != 4 || !strings.Contains(logged[1], `"denied":true`) || !strings.Contains(logged[3], "EXEC_FAILED") {
		t.Errorf("logged %q", logged)
	}
}
