package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/sandbox"
	"github.com/dsh-run/dsh/session/sessiontest"
)

// machine is a user's surroundings in which the command is run.
type machine struct {
	command, home, work string
	before              []string // a command line to put in front
	path                string
}

func newMachine(t *testing.T, command string) *machine {
	t.Helper()
	home, err := os.MkdirTemp(outsideOfTemp, "dsh-run-doctor-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	m := &machine{command: command, home: home, work: filepath.Join(home, "work"), path: os.Getenv("PATH")}
	if err := os.MkdirAll(filepath.Join(m.work, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) configure(t *testing.T, text string) {
	t.Helper()
	dir := filepath.Join(m.home, "dsh-run")
	text = strings.ReplaceAll(text, "DSH_RUN", m.command)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, configName), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// onlyPath makes a PATH of one directory with links to these programs.
func (m *machine) onlyPath(t *testing.T, dir string, programs ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range programs {
		path, err := exec.LookPath(name)
		sessiontest.Need(t, name, err == nil, "it is not in PATH")
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	m.path = dir
}

// run returns stdout, stderr and the exit code of the command.
func (m *machine) run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	argv := slices.Concat(m.before, []string{m.command}, args)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = m.work
	cmd.Env = []string{"HOME=" + m.home, "XDG_CONFIG_HOME=" + m.home, "PATH=" + m.path, "LC_ALL=C"}
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// told is the part of doctor's JSON that is compared.
type told struct {
	Backends []backendFinding     `json:"backends"`
	Modes    []policy.Confinement `json:"modes"`
}

func (m *machine) doctor(t *testing.T) (found told, code int) {
	t.Helper()
	out, stderr, code := m.run(t, "doctor", "--json")
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("%v: %s%s", err, out, stderr)
	}
	return found, code
}

// TestDoctorSaysWhatHappens compares what doctor says with what a command in
// each mode then reports.
func TestDoctorSaysWhatHappens(t *testing.T) {
	needBackend(t, "landlock")
	needBackend(t, "bwrap")
	command, launcher := buildCommand(t), buildLauncher(t)
	const runner = `runner:
  argv: [DSH_RUN, landlock, "--rw={writable}", "--rw={device}", --]
  ungoverned: [network, metadata_writes]
`
	for _, row := range []struct {
		claim   string
		prepare func(*testing.T, *machine)
		by      string            // what confines; "none" where nothing runs
		write   string            // the same in workspace-write; "" for no other
		why     map[string]string // what is said of those that do not work
	}{
		{"everything is there", func(*testing.T, *machine) {}, "bwrap", "", nil},
		{"the configuration chooses landlock", func(t *testing.T, m *machine) { m.configure(t, "backends: [landlock]\n") }, "landlock", "", nil},
		{"the configuration turns the order", func(t *testing.T, m *machine) { m.configure(t, "backends: [landlock, bwrap]\n") }, "landlock", "", nil},
		{"the configuration demands full enforcement", func(t *testing.T, m *machine) {
			m.configure(t, "backends: [landlock]\nrequire-full: true\n")
		}, "landlock", "none", nil},
		{"the configuration demands full enforcement, which another gives", func(t *testing.T, m *machine) {
			m.configure(t, "backends: [landlock, bwrap]\nrequire-full: true\n")
		}, "landlock", "bwrap", nil},
		{"the configuration has a runner", func(t *testing.T, m *machine) { m.configure(t, runner) }, "dsh-run", "", nil},
		{"the runner is not there", func(t *testing.T, m *machine) { m.configure(t, "runner:\n  argv: [/missing/runner]\n") }, "none", "",
			map[string]string{"runner": "stat /missing/runner: no such file or directory; install it, or name another one"}},
		{"bubblewrap is not installed", func(t *testing.T, m *machine) {
			m.onlyPath(t, filepath.Join(m.home, "bin"), "sh", "bash", "true")
		}, "landlock", "", map[string]string{"bwrap": "there is no bwrap in PATH. Install it"}},
		{"bubblewrap lies in the workspace", func(t *testing.T, m *machine) {
			m.onlyPath(t, filepath.Join(m.work, "bin"), "sh", "bash", "true", "bwrap")
		}, "landlock", "", map[string]string{"bwrap": "where commands may write, so that it may be anything; install it in a system directory"}},
		{"only bubblewrap is wanted, and it is not installed", func(t *testing.T, m *machine) {
			m.configure(t, "backends: [bwrap]\n")
			m.onlyPath(t, filepath.Join(m.home, "bin"), "sh", "bash", "true")
		}, "none", "", map[string]string{"bwrap": "Install it"}},
		{"the kernel has no sandbox", func(_ *testing.T, m *machine) {
			m.before = []string{filepath.Join(launcher, "nosandbox")}
		}, "none", "", map[string]string{"bwrap": "allow unprivileged user namespaces", "landlock": "use Linux 5.13 or later; in a container, allow the landlock_"}},
	} {
		t.Run(row.claim, func(t *testing.T) {
			m := newMachine(t, command)
			row.prepare(t, m)
			found, code := m.doctor(t)
			checkWhy(t, found, row.why)
			for i, want := range []string{row.by, cmp.Or(row.write, row.by)} {
				if mode := found.Modes[i]; mode.Backend != want {
					t.Errorf("doctor says that %v would be enforced by %s, want %s", mode.Mode, mode.Backend, want)
				}
			}
			if want := map[bool]int{true: exitUnavailable, false: exitOK}[row.by == "none"]; code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
			for _, want := range found.Modes {
				m.compare(t, want, row.why)
			}
			for _, b := range found.Backends {
				for _, want := range b.Modes {
					m.compareBackend(t, b.Name, want)
				}
			}
		})
	}
}

// checkWhy: only these do not work, and each is told of in words that say what
// to do.
func checkWhy(t *testing.T, found told, why map[string]string) {
	t.Helper()
	for _, b := range found.Backends {
		want, broken := why[b.Name]
		if b.Works == broken || broken && !matches(want, b.Why) {
			t.Errorf("%+v, want it to work: %v, and a reason with %q", b, !broken, want)
		}
	}
}

// compare runs a command in the mode.
func (m *machine) compare(t *testing.T, want policy.Confinement, why map[string]string) {
	t.Helper()
	args := []string{"call", "--json", "--yes", "--log", "none", "--approve", "never", "--sandbox", want.Mode.String(), "bash", `{"command":"true"}`}
	out, stderr, code := m.run(t, args...)
	if want.Mode != policy.DangerFullAccess && want.Enforcement == policy.NotEnforced {
		if code != exitUnavailable {
			t.Errorf("%v: exit code %d, although doctor says that nothing would run: %s%s", want.Mode, code, out, stderr)
		}
		for name, reason := range why {
			if !matches(name+": .*"+reason, out) {
				t.Errorf("%v: %s, want also the reason %q", want.Mode, out, reason)
			}
		}
		return
	}
	same(t, out+stderr, out, want)
}

// compareBackend runs a command by that backend alone, which can only be told
// on the command line for those of the platform.
func (m *machine) compareBackend(t *testing.T, name string, want policy.Confinement) {
	t.Helper()
	if !slices.Contains(sandbox.Backends(), name) {
		return // a runner, which was compared as the one that confines
	}
	out, stderr, _ := m.run(t, "call", "--json", "--log", "none", "--approve", "never", "--require-full=false", "--backends", name, "--sandbox", want.Mode.String(), "bash", `{"command":"true"}`)
	same(t, out+stderr, out, want)
}

// same compares what a call reports with what doctor said.
func same(t *testing.T, said, result string, want policy.Confinement) {
	t.Helper()
	var got struct {
		Value struct {
			Sandbox policy.Confinement `json:"sandbox"`
		} `json:"value"`
	}
	if err := json.Unmarshal([]byte(result), &got); err != nil {
		t.Errorf("%v: %v: %s", want.Mode, err, said)
		return
	}
	c := got.Value.Sandbox
	if c.Mode != want.Mode || c.Backend != want.Backend || c.Enforcement != want.Enforcement ||
		!slices.Equal(c.Reasons, want.Reasons) || c.VCSHooks != want.VCSHooks {
		t.Errorf("doctor says\n%+v, a command\n%+v: %s", want, c, said)
	}
}

func TestDoctorText(t *testing.T) {
	f := findings{
		Backends: []backendFinding{
			{Name: "bwrap", Why: "it is not installed", Chosen: true},
			{Name: "landlock", Works: true, Chosen: true, Modes: []policy.Confinement{
				{Mode: policy.ReadOnly, Enforcement: policy.Full}, {Mode: policy.WorkspaceWrite, Enforcement: policy.Partial},
			}},
			{Name: "other", Works: true},
		},
		Modes: []policy.Confinement{
			{Mode: policy.ReadOnly, Backend: "landlock", Enforcement: policy.Full, Reasons: []string{"network"}, VCSHooks: policy.HooksEnforced},
			{Mode: policy.WorkspaceWrite, Backend: "none"},
			policy.Unconfined(),
		},
	}
	for _, line := range []string{
		"backend    bwrap      does not work: it is not installed\n",
		"backend    landlock   works: read-only full, workspace-write partial\n",
		"backend    other      works; not used, the configuration chooses others\n",
		"mode       read-only            full by landlock; not governed: network; hooks of git: enforced\n",
		"mode       workspace-write      nothing would run\n",
		"mode       danger-full-access   not confined\n",
	} {
		if text := f.text(); !strings.Contains(text, line) {
			t.Errorf("there is no %q in\n%s", line, text)
		}
	}
}

func matches(expression, text string) bool {
	return regexp.MustCompile(expression).MatchString(text)
}
