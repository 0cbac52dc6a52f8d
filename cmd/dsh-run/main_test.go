package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dsh-run/dsh/sandbox"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/session/sessiontest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"dsh-run": main})
}

// Scripts state in their first line what the command promises. Those whose
// name begins with kernel- need a sandbox that works.
func TestScripts(t *testing.T) {
	runScripts(t, func(kernel bool) bool { return !kernel }, "", setUp)
}

// TestKernelScripts runs each script with each backend alone; a script tells
// them apart by conditions of their names.
func TestKernelScripts(t *testing.T) {
	launcher, command := buildLauncher(t), buildCommand(t)
	for _, backend := range sandbox.Backends() {
		t.Run(backend, func(t *testing.T) {
			needBackend(t, backend)
			runScripts(t, func(kernel bool) bool { return kernel }, backend, func(env *testscript.Env) error {
				env.Setenv("DSH_RUN", command)
				env.Setenv("PATH", launcher+string(filepath.ListSeparator)+env.Getenv("PATH"))
				return errors.Join(setUp(env), chooseBackend(env, backend))
			})
		})
	}
}

// chooseBackend gives a script the configuration of a user who chose one.
func chooseBackend(env *testscript.Env, backend string) error {
	home, err := os.MkdirTemp(outsideOfTemp, "dsh-run-config-")
	if err != nil {
		return err
	}
	env.Defer(func() { os.RemoveAll(home) })
	env.Setenv("XDG_CONFIG_HOME", home)
	dir := filepath.Join(home, "dsh-run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, configName), []byte("backends: ["+backend+"]\n"), 0o600)
}

func runScripts(t *testing.T, want func(kernel bool) bool, backend string, setUp func(*testscript.Env) error) {
	t.Helper()
	all, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(all) == 0 {
		t.Fatalf("there are no scripts: %v", err)
	}
	var files []string
	for _, file := range all {
		if want(strings.HasPrefix(filepath.Base(file), "kernel-")) {
			files = append(files, file)
		}
	}
	testscript.Run(t, testscript.Params{
		Files: files, Setup: setUp, RequireExplicitExec: true,
		Cmds:      map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "inflight": inFlight},
		Condition: func(cond string) (bool, error) { return cond == backend, nil },
	})
}

// exits runs a command and compares its exit code with the first argument.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE command args...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// inFlight checks that a log has at least so many sub-calls of a tool, and that
// at some moment so many of them had been made and had no result yet.
func inFlight(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: inflight LOG TOOL CALLS IN-FLIGHT")
	}
	calls, open, most := 0, map[string]bool{}, 0
	ts.Check(session.Read(ts.MkAbs(args[0]), func(e session.Event) bool {
		var data struct {
			CallID   string `json:"call_id"`
			ParentID string `json:"parent_id"`
			Tool     string `json:"tool"`
		}
		ts.Check(json.Unmarshal(e.Data, &data))
		switch {
		case e.Type == session.ToolCall && data.ParentID != "" && data.Tool == args[1]:
			calls++
			open[data.CallID] = true
			most = max(most, len(open))
		case e.Type == session.ToolResult:
			delete(open, data.CallID)
		}
		return true
	}))
	wantCalls, err := strconv.Atoi(args[2])
	ts.Check(err)
	wantMost, err := strconv.Atoi(args[3])
	ts.Check(err)
	if calls < wantCalls || most < wantMost {
		ts.Fatalf("%d calls of %s, at most %d in flight; want %d and %d", calls, args[1], most, wantCalls, wantMost)
	}
}

func needBackend(t *testing.T, name string) {
	t.Helper()
	what := map[string]string{"landlock": "kernel", "bwrap": "bwrap"}[name]
	for _, b := range sandbox.Probe(t.Context(), "").Backends {
		if b.Name == name {
			sessiontest.Need(t, what, b.Works, b.Why)
		}
	}
}

// setUp gives a script a home outside of the temporary directories, which
// commands may change in workspace-write.
func setUp(env *testscript.Env) error {
	home, err := os.MkdirTemp(outsideOfTemp, "dsh-run-script-")
	if err != nil {
		return err
	}
	env.Defer(func() { os.RemoveAll(home) })
	env.Setenv("HOME", home)
	env.Setenv("XDG_STATE_HOME", "")
	env.Setenv("XDG_CONFIG_HOME", "")
	env.Setenv("NO_COLOR", "1")
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	env.Setenv("GOROOT", strings.TrimSpace(string(goroot)))
	programs, err := filepath.Abs("../../testdata/programs")
	env.Setenv("PROGRAMS", programs)
	return err
}

// outsideOfTemp is a directory that workspace-write does not open.
const outsideOfTemp = "/var/tmp"

// buildLauncher returns the directory of the command nosandbox, which runs its
// arguments as on a kernel without a sandbox.
func buildLauncher(t *testing.T) string {
	dir := t.TempDir()
	build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "nosandbox"), "../../scripts/nosandbox")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the launcher: %v\n%s", err, out)
	}
	return dir
}

// buildCommand returns the path of this command where no command may write, as
// it is installed.
func buildCommand(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(outsideOfTemp, "dsh-run-command-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "dsh-run")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the command: %v\n%s", err, out)
	}
	return path
}
