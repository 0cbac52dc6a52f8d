//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
)

// spawn starts the wrapped command line by itself, as a caller would that has
// its own way to start processes, and classifies its end.
func spawn(t *testing.T, c *Confined, dir string, argv ...string) (ended, policy.Confinement, error) {
	t.Helper()
	wrapped, ok := c.Argv(argv, dir)
	if !ok {
		t.Fatal("there is no wrapped command line")
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.Cmd{Path: wrapped[0], Args: wrapped, Stdout: &stdout, Stderr: &stderr, Env: append(os.Environ(), "LC_ALL=C")}
	err := cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("spawn %q: %v", wrapped, err)
	}
	e := ended{exit: cmd.ProcessState.ExitCode(), signal: signalOf(cmd.ProcessState), stdout: stdout.String(), stderr: stderr.String(), confined: c}
	confinement, err := c.Classify(stderr.Bytes(), e.exit, e.signal)
	return e, confinement, err
}

// TestSpawnedArgv tells the three failures apart behind bubblewrap's wrapped
// command line.
func TestSpawnedArgv(t *testing.T) {
	needBackend(t, "bwrap")
	const (
		success = "success"
		broken  = "broken"
		denied  = "denied"
		own     = "own"
	)
	for _, row := range []struct {
		claim string
		argv  []string
		dir   string
		after func(place) error // between wrapping and spawning
		want  string
		exit  int
	}{
		{"a command that succeeds", []string{"sh", "-c", "echo x > new && cat f"}, "", nil, success, 0},
		{"a command that was denied", []string{"touch", "$OUT/new"}, "", nil, denied, 1},
		{"a command that was denied what is protected", []string{"touch", ".git/hooks/new"}, "", nil, denied, 1},
		{"a command that fails by itself", []string{"sh", "-c", "exit 7"}, "", nil, own, 7},
		{"a missing file", []string{"cat", "missing"}, "", nil, own, 1},
		{"a command that prints the runner's prefix and more", []string{"sh", "-c", "echo 'bwrap: broken' >&2; echo more >&2; exit 1"}, "", nil, own, 1},
		{"a command that prints the runner's prefix and exits otherwise", []string{"sh", "-c", "echo 'bwrap: broken' >&2; exit 2"}, "", nil, own, 2},
		{"a command that prints the runner's prefix and succeeds", []string{"sh", "-c", "echo 'bwrap: broken' >&2"}, "", nil, success, 0},
		{"a program that is not there", []string{"dsh-no-such-program"}, "", nil, own, 1},
		{"a program that cannot be executed", []string{"./f"}, "", nil, own, 1},
		{"a directory that is not there", []string{"true"}, "$WS/missing", nil, own, 1},
		{"a sandbox that cannot be set up", []string{"touch", "new"}, "", func(p place) error { return os.RemoveAll(p.root + "/.git") }, broken, 1},
	} {
		t.Run(row.claim, func(t *testing.T) {
			p := newPlace(t)
			if err := errors.Join(os.MkdirAll(p.root+"/.git/hooks", 0o700), os.WriteFile(p.root+"/.git/config", nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			fill := strings.NewReplacer("$OUT", p.out, "$WS", p.root)
			for i := range row.argv {
				row.argv[i] = fill.Replace(row.argv[i])
			}
			dir := p.root
			if row.dir != "" {
				dir = fill.Replace(row.dir)
			}
			c := confine(t, p.policyBy("bwrap", policy.WorkspaceWrite))
			if row.after != nil {
				wrapped := c.restriction
				c.restriction = wrappedBefore{wrapped, row.after, p}
			}
			e, confinement, err := spawn(t, c, dir, row.argv...)
			_, unavailable := errors.AsType[*UnavailableError](err)
			got := success
			switch {
			case unavailable:
				got = broken
			case err != nil:
				t.Fatal(err)
			case confinement.Denied:
				got = denied
			case e.exit != 0:
				got = own
			}
			if got != row.want || e.exit != row.exit {
				t.Errorf("%s (%v), want %s with exit code %d: %v, %+v", got, err, row.want, row.exit, e, confinement)
			}
			if got == broken && exists(p.root+"/new") {
				t.Error("the command ran")
			}
		})
	}
}

// wrappedBefore changes the world right after the command line was wrapped.
type wrappedBefore struct {
	restriction
	change func(place) error
	place  place
}

func (w wrappedBefore) argv(argv []string, dir string) ([]string, bool) {
	wrapped, ok := w.restriction.argv(argv, dir)
	return wrapped, ok && w.change(w.place) == nil
}

// TestLandlockHasNoArgv: there is no program to put in front.
func TestLandlockHasNoArgv(t *testing.T) {
	needKernel(t)
	p := newPlace(t)
	if argv, ok := confine(t, p.policy(policy.ReadOnly)).Argv([]string{"true"}, p.root); ok {
		t.Errorf("%q", argv)
	}
}
