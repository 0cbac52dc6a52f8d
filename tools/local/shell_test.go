package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/sandbox"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/session/sessiontest"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

// shellBench is a bench on a machine that confines commands.
func shellBench(t *testing.T, mode policy.Mode) *bench {
	t.Helper()
	for _, b := range sandbox.Probe(t.Context(), "").Backends {
		if b.Works && b.Name == "landlock" {
			return newBench(t, mode)
		}
	}
	sessiontest.Need(t, "kernel", false, "no sandbox works here")
	return nil
}

// stream is the text of one stream of a value.
func stream(v object, name string) string { return v[name].(map[string]any)["text"].(string) }

func TestShellSaysHowACommandEnded(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	for _, c := range []struct {
		claim, command string
		exit           any
		signal         any
		stdout, stderr string
		text           string
	}{
		{"all is well", "echo out", 0.0, nil, "out\n", "", "out"},
		{"the streams stay apart", "echo a; echo b >&2; echo c", 0.0, nil, "a\nc\n", "b\n", "a\nc\n[stderr]\nb"},
		{"an exit code is told", "exit 3", 3.0, nil, "", "", "[exit code: 3]"},
		{"a signal is told", "kill -KILL $$", nil, "SIGKILL", "", "", "[killed by signal: SIGKILL]"},
		{"nothing to say", "true", 0.0, nil, "", "", "[no output]"},
		{"a missing program is the shell's matter", "no-such-program 2>/dev/null", 127.0, nil, "", "", "[exit code: 127]"},
		{"no input", "cat", 0.0, nil, "", "", "[no output]"},
		{"what is not UTF-8 is replaced", `printf 'a\377b'`, 0.0, nil, "a\uFFFDb", "", "a\uFFFDb"},
		{"frames are rendered for a model only", `printf '10%%\r20%%\n'`, 0.0, nil, "10%\r20%\n", "", "20%"},
		{"quotes and dollars pass as they are", `echo '$HOME "x"' \\`, 0.0, nil, "$HOME \"x\" \\\n", "", `$HOME "x" \`},
		{"a long command passes", "# " + strings.Repeat("x", 200<<10) + "\necho long; cat", 0.0, nil, "long\n", "", "long"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			r := b.call("bash", object{"command": c.command})
			v := b.value(r)
			if v["exit_code"] != c.exit || v["signal"] != c.signal || stream(v, "stdout") != c.stdout || stream(v, "stderr") != c.stderr {
				t.Errorf("value is %.500s", r.Value)
			}
			if text(r) != c.text {
				t.Errorf("a model sees %q, want %q", text(r), c.text)
			}
		})
	}
}

func TestShellIsDeniedOutside(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	r := b.call("bash", object{"command": "echo x > new.txt"})
	v := b.value(r)["sandbox"].(map[string]any)
	if v["denied"] != true || v["path"] != b.path("new.txt") || v["confidence"] != "path" || v["backend"] != "landlock" {
		t.Errorf("the value says %v", v)
	}
	lines := strings.Split(text(r), "\n")
	if n := len(lines); n < 3 || lines[n-3] != "[sandbox: file access denied under read-only mode]" ||
		!strings.Contains(lines[n-2], "sandbox_permissions") || lines[n-1] != "[exit code: 1]" {
		t.Errorf("the markers are %q", lines)
	}
	if by := r.Meta.Confinement; by == nil || !by.Denied {
		t.Errorf("the log would say %+v", by)
	}
	logged := b.events(session.ToolResult)
	if len(logged) != 1 || !strings.Contains(string(logged[0]), `"denied":true`) {
		t.Errorf("logged %s", logged)
	}
	if _, err := os.Stat(b.path("new.txt")); err == nil {
		t.Error("the file was written")
	}
}

func TestShellWritesWhatItsModeAllows(t *testing.T) {
	b := shellBench(t, policy.WorkspaceWrite)
	b.ok("bash", object{"command": "echo x > new.txt; echo y > $TMPDIR/t; test $(cat $TMPDIR/t) = y"})
	b.has("new.txt", "x\n")
	outside := filepath.Join(filepath.Dir(b.dir), "outside")
	v := b.ok("bash", object{"command": "echo x > " + outside})
	if v["exit_code"] == 0.0 || v["sandbox"].(map[string]any)["denied"] != true {
		t.Errorf("writing outside gave %v", v)
	}
}

func TestShellRefuses(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	b.put("file", "")
	for _, c := range []struct {
		claim string
		code  tools.Code
		args  object
		says  string
	}{
		{"a NUL byte", tools.InvalidArgs, object{"command": "echo \x00"}, "NUL"},
		{"a workdir that is missing", local.NotFound, object{"command": "pwd", "workdir": "none"}, "none"},
		{"a workdir that is a file", local.NotDirectory, object{"command": "pwd", "workdir": "file"}, "not a directory"},
		{"no time at all", tools.InvalidArgs, object{"command": "pwd", "timeout_ms": 0}, "more than 0"},
		{"an unknown word", tools.InvalidArgs, object{"command": "pwd", "on_timeout": "wait"}, "on_timeout"},
		{"an unknown argument", tools.InvalidArgs, object{"command": "pwd", "time": 1}, `unknown argument "time"`},
		{"a mode that is not wider", tools.InvalidArgs, object{"command": "pwd", "sandbox_permissions": "read-only", "justification": "x"}, "only a wider mode"},
	} {
		t.Run(c.claim, func(t *testing.T) { b.fails(c.code, "bash", c.args, c.says) })
	}
}

func TestShellRunsWhereItIsTold(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	b.put("a/b/file", "")
	if err := os.Symlink("a/b", b.path("link")); err != nil {
		t.Fatal(err)
	}
	for workdir, want := range map[string]string{"": b.dir, "a": b.path("a"), "/": "/", "link/..": b.path("a")} {
		v := b.ok("bash", object{"command": "pwd -P", "workdir": workdir})
		if got := strings.TrimSpace(stream(v, "stdout")); got != want {
			t.Errorf("workdir %q: ran in %q, want %q", workdir, got, want)
		}
	}
	v := b.ok("bash", object{"command": "timeout_is_long", "timeout_ms": 10_000_000})
	if !strings.Contains(fmt.Sprint(v["markers"]), "the longest is 600000") {
		t.Errorf("a clamped timeout is not told: %v", v["markers"])
	}
}

func TestCommandsGetAnEnvironmentWithoutSecrets(t *testing.T) {
	t.Setenv("MY_API_TOKEN", "s3cret")
	t.Setenv("LD_PRELOAD", "")
	t.Setenv("DSH_FOREIGN", "1")
	b := shellBench(t, policy.ReadOnly)
	v := b.ok("bash", object{"command": "env"})
	out := stream(v, "stdout")
	for _, want := range []string{"DSH_CALL_ID=c1", "DSH_SANDBOX=read-only", "TERM=dumb", "GIT_TERMINAL_PROMPT=0", "TMPDIR=" + b.session.Log().TempDir(), "DSH_LOG=" + b.session.Log().Path()} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	for _, not := range []string{"s3cret", "LD_PRELOAD", "DSH_FOREIGN"} {
		if strings.Contains(out, not) {
			t.Errorf("%s reached the command", not)
		}
	}
	if !slices.Contains(v["withheld_environment"].([]any), any("MY_API_TOKEN")) || strings.Contains(fmt.Sprint(v["withheld_environment"]), "s3cret") {
		t.Errorf("withheld: %v", v["withheld_environment"])
	}
}

func TestTheCallEndsWhenTheShellDoes(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	r := b.call("bash", object{"command": "sleep 1000 & echo $! > $TMPDIR/pid; echo started"})
	if got := text(r); got != "started\n[1 process outlived the command and was ended]" {
		t.Errorf("a model sees %q", got)
	}
	b.gone("pid")
}

// gone fails unless the process whose number is in a file of the temporary
// directory has ended.
func (b *bench) gone(file string) {
	b.t.Helper()
	pid, err := os.ReadFile(filepath.Join(b.session.Log().TempDir(), file))
	if err != nil {
		b.t.Fatal(err)
	}
	stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
	if _, state, _ := strings.Cut(string(stat), ") "); err == nil && !strings.HasPrefix(state, "Z") {
		b.t.Errorf("the process %s is still there: %s", pid, stat)
	}
}

func TestTimeouts(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	for _, c := range []struct {
		claim  string
		kind   policy.CallerKind
		args   object
		job    bool
		marker string
	}{
		{"a direct call goes on as a job", policy.Direct, object{}, true, "[timed out after 100 ms; it goes on as the job bash-1"},
		{"a direct call is killed when it says so", policy.Direct, object{"on_timeout": "kill"}, false, "[timed out after 100 ms; it was killed]"},
		{"a program's call is killed", policy.Program, object{}, false, "[timed out after 100 ms; it was killed]"},
		{"a program's call goes on when it says so", policy.Program, object{"on_timeout": "job"}, true, "[timed out after 100 ms; it goes on as the job bash-2"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			c.args["command"], c.args["timeout_ms"] = "sleep 1000", 100
			r := b.callAs(t.Context(), c.kind, "bash", c.args)
			v := b.value(r)
			if v["timed_out"] != true || (v["job_id"] != nil) != c.job || !strings.HasPrefix(text(r), c.marker) {
				t.Errorf("value %s, text %q", r.Value, text(r))
			}
			if !c.job && v["signal"] != "SIGTERM" {
				t.Errorf("it ended by %v", v["signal"])
			}
		})
	}
}

func TestCancellingKillsTheTree(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	ctx, cancel := context.WithCancel(t.Context())
	started := filepath.Join(b.session.Log().TempDir(), "pid")
	go func() {
		defer cancel()
		waitFor(t, func() bool { info, err := os.Stat(started); return err == nil && info.Size() > 0 })
	}()
	r := b.callAs(ctx, policy.Direct, "bash", object{"command": "(trap '' TERM; echo $BASHPID > $TMPDIR/pid; while :; do sleep 0.1; done) & wait"})
	if r.Error == nil || r.Error.Code != tools.Aborted {
		t.Errorf("the call ended with %+v", r.Error)
	}
	b.gone("pid")
}

// waitFor returns when ready does, or fails after a while.
func waitFor(t *testing.T, ready func() bool) {
	for deadline := time.Now().Add(30 * time.Second); !ready(); {
		if time.Now().After(deadline) {
			t.Error("it never happened")
			return
		}
	}
}

func TestLongOutputIsCutForAModelAndSavedWhole(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	const size = 20 << 20
	for claim, command := range map[string]string{
		"many lines": "yes abcdefghi | head -c 20971520",
		"one line":   "head -c 20971520 /dev/zero | tr '\\0' x",
	} {
		t.Run(claim, func(t *testing.T) {
			r := b.call("bash", object{"command": command + "; echo; echo END"})
			out := b.value(r)["stdout"].(map[string]any)
			if out["truncated"] != true || out["bytes"] != float64(size+5) || len(out["text"].(string)) != 8<<20 {
				t.Errorf("truncated %v, %v bytes, %d in the value", out["truncated"], out["bytes"], len(out["text"].(string)))
			}
			if got := text(r); len(got) > 12500*4 || !strings.HasSuffix(got, "END") || !strings.Contains(got, "only the end of stdout is shown") {
				t.Errorf("a model sees %d bytes: %.200q", len(got), got)
			}
			info, err := os.Stat(out["spill_path"].(string))
			if err != nil || info.Size() != size+5 || info.Mode().Perm() != 0o600 {
				t.Errorf("the file is %v, %v", info, err)
			}
		})
	}
}

func TestWideningRunsOneCommandInTheWiderMode(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	asked := 0
	registry := tools.NewRegistry(&tools.Options{Approvals: policy.NewApprovals(0, policy.Answerer{
		Name: "test", Answer: func(_ context.Context, q policy.Question) (policy.Outcome, error) {
			asked++
			if q.Denied != "c1" || q.To != policy.WorkspaceWrite {
				t.Errorf("the question is %+v", q)
			}
			return policy.AllowedOnce, nil
		},
	})})
	for _, tool := range b.set.Tools() {
		registry.Add(tool)
	}
	b.Registry = registry
	b.ok("bash", object{"command": "echo x > new.txt"})
	v := b.ok("bash", object{"command": "echo x > new.txt", "sandbox_permissions": "workspace-write", "justification": "needed"})
	if v["exit_code"] != 0.0 || v["sandbox"].(map[string]any)["mode"] != "workspace-write" || asked != 1 {
		t.Errorf("asked %d times, value %v", asked, v)
	}
	b.has("new.txt", "x\n")
	v = b.ok("bash", object{"command": "echo x > other.txt"})
	if v["sandbox"].(map[string]any)["denied"] != true {
		t.Error("the next command was not confined again")
	}
}

func TestWithoutBashTheToolSaysSo(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	t.Setenv("PATH", t.TempDir())
	b.fails(tools.ToolFailed, "bash", object{"command": "true"}, "bash was not found in PATH")
}
