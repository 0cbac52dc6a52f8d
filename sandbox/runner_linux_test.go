//go:build linux && (amd64 || arm64)

package sandbox

import (
	"slices"
	"testing"

	"github.com/dsh-run/dsh/policy"
)

func TestRunnerArgv(t *testing.T) {
	p := newPlace(t)
	roots := policy.Roots{Dirs: []string{p.temp, p.root, p.out + "/missing"}, Devices: []string{"/dev/null", "/dev/missing"}}
	scope := policy.Scope{Mode: policy.WorkspaceWrite, Root: p.root, Temp: p.temp}
	for _, row := range []struct {
		claim     string
		arg       string
		wantWords []string
	}{
		{"an argument as it is", "--", []string{"--"}},
		{"the words of the call", "{mode}:{root}:{temp}:{dir}", []string{"workspace-write:" + p.root + ":" + p.temp + ":/{writable}"}},
		{"once for each directory that is there", "--rw={writable}", []string{"--rw=" + p.temp, "--rw=" + p.root}},
		{"a pair of one directory", "{writable}:{writable}", []string{p.temp + ":" + p.temp, p.root + ":" + p.root}},
		{"once for each device that is there", "--rw={device}", []string{"--rw=/dev/null"}},
		{"other words beside", "{mode}={device}", []string{"workspace-write=/dev/null"}},
	} {
		t.Run(row.claim, func(t *testing.T) {
			r := runnerRestriction{runnerBackend{&Runner{Argv: []string{"/runner", row.arg}}}, scope, roots}
			got, ok := r.argv([]string{"cmd", "{root}"}, "/{writable}")
			if want := slices.Concat([]string{"/runner"}, row.wantWords, []string{"cmd", "{root}"}); !ok || !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestRunnerSignature: the exit code, a fatal line, and nothing but lines of
// information besides, all three.
func TestRunnerSignature(t *testing.T) {
	runner := runnerBackend{&Runner{Argv: []string{"/runner"}, FailureExits: []int{125}, FailureLine: "^landlock-run: ", InfoLines: []string{"warming up"}}}
	for _, row := range []struct {
		claim, stderr string
		exit          int
		failed        bool
	}{
		{"its failure", "landlock-run: broken\n", 125, true},
		{"its failure behind information", "warming up\nlandlock-run: broken\n", 125, true},
		{"its failure behind the notice", LaunchNotice + "\nlandlock-run: broken\n", 125, true},
		{"the notice alone", LaunchNotice + "\n", 125, false},
		{"a line that only begins like the notice is fatal", LaunchNotice + "!\n", 125, true},
		{"information that goes on in the line", "warming up the engine\nlandlock-run: broken\n", 125, false},
		{"another exit code", "landlock-run: broken\n", 1, false},
		{"the command's own words", "landlock-run: broken\nmake: *** [all] Error 125\n", 125, false},
		{"its prefix inside of a line", "error: landlock-run: broken\n", 125, false},
		{"silence", "", 125, false},
	} {
		t.Run(row.claim, func(t *testing.T) {
			if err := runner.signature().failure([]byte(row.stderr), row.exit, 0); (err != nil) != row.failed {
				t.Errorf("failure %v, want one: %v", err, row.failed)
			}
		})
	}
	if err := runner.signature().failure([]byte("landlock-run: broken\n"), -1, 9); err != nil {
		t.Errorf("a signal is no failure of the runner's: %v", err)
	}
}
