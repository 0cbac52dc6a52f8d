//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
)

// forEver is longer than any test: what sleeps so long must be ended.
const forEver = "3600"

// startTalking starts a script that says a line when it is ready, and returns
// its tree with that line.
func startTalking(t *testing.T, start func(*exec.Cmd) (*Tree, error), script string, env ...string) (*Tree, string) {
	t.Helper()
	read, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close() })
	cmd := exec.Command("bash", "-c", script)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout = written
	tree, err := start(cmd)
	written.Close()
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatalf("the script said nothing: %v", err)
	}
	return tree, strings.TrimSpace(line)
}

// isGone reports whether the process has ended, reaped or not.
func isGone(t *testing.T, number string) bool {
	t.Helper()
	pid, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("the script said %q, not a process", number)
	}
	p, ok := readProcess(pid)
	return !ok || !p.alive()
}

func TestKill(t *testing.T) {
	needProgram(t, "bash")
	for _, row := range []struct {
		claim, script string
		grace         time.Duration
		want          syscall.Signal
	}{
		{"TERM ends what obeys it", "echo ready; exec sleep " + forEver, time.Minute, unix.SIGTERM},
		{"TERM reaches what is stopped", "echo ready; kill -STOP $$; exec sleep " + forEver, time.Minute, unix.SIGTERM},
		{"KILL ends what ignores TERM, after the grace", "trap '' TERM; echo ready; while :; do read -t 0.01 < <(:); done", 50 * time.Millisecond, unix.SIGKILL},
		{"no grace is KILL at once", "trap '' TERM; echo ready; exec sleep " + forEver, 0, unix.SIGKILL},
	} {
		t.Run(row.claim, func(t *testing.T) {
			tree, _ := startTalking(t, StartTree, row.script)
			began := time.Now()
			tree.Kill(row.grace)
			report, err := tree.Wait()
			if err == nil || report.Signal != row.want {
				t.Errorf("ended by %v (%v), want %v", report.State, err, row.want)
			}
			if row.want == unix.SIGKILL && time.Since(began) < row.grace {
				t.Error("KILL came before the end of the grace")
			}
			tree.Kill(0) // a tree that has ended is left alone
		})
	}
}

func TestKillAgainShortensTheGrace(t *testing.T) {
	needProgram(t, "bash")
	tree, _ := startTalking(t, StartTree, "trap '' TERM; echo ready; while :; do read -t 0.01 < <(:); done")
	tree.Kill(time.Hour)
	tree.Kill(2 * time.Hour)
	tree.Kill(0)
	if report, err := tree.Wait(); err == nil || report.Signal != unix.SIGKILL {
		t.Errorf("ended by %v (%v)", report.State, err)
	}
}

func TestWaitEndsWithTheShell(t *testing.T) {
	needProgram(t, "bash")
	const mark = `env -u TMPDIR -u DSH_CALL_ID `
	for _, row := range []struct{ claim, script string }{
		{"a child in the background", "sleep " + forEver + " & echo $!"},
		{"a child that ignores TERM", "(trap '' TERM; exec sleep " + forEver + ") & echo $!"},
		{"a child of its own process group", "set -m; sleep " + forEver + " & echo $!"},
		{"a child that left the session and lost its parent, by its mark", "setsid sleep " + forEver + " & echo $!"},
		{"a child that changed its mark, by its session", mark + "sleep " + forEver + " & echo $!"},
	} {
		t.Run(row.claim, func(t *testing.T) {
			id := fmt.Sprintf("DSH_CALL_ID=%s-%d", t.Name(), os.Getpid())
			tree, child := startTalking(t, StartTree, row.script, "TMPDIR=/tmp/of-this-session", id)
			report, err := tree.Wait()
			if err != nil || report.Leftovers != 1 {
				t.Errorf("%d leftovers (%v), want 1", report.Leftovers, err)
			}
			if !isGone(t, child) {
				t.Errorf("process %s is still there", child)
			}
		})
	}
}

func TestKillFindsWhatLeftTheSession(t *testing.T) {
	needProgram(t, "setsid")
	tree, child := startTalking(t, StartTree, "setsid sh -c 'echo $$; exec sleep "+forEver+"' & wait")
	tree.Kill(0)
	if _, err := tree.Wait(); err == nil {
		t.Error("it was not killed")
	}
	if !isGone(t, child) {
		t.Errorf("process %s is still there", child)
	}
}

func TestWaitDoesNotWaitForPipes(t *testing.T) {
	needProgram(t, "bash")
	cmd := exec.Command("bash", "-c", "echo said; sleep "+forEver+" &")
	var said strings.Builder
	cmd.Stdout = &said
	tree, err := StartTree(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Wait(); err != nil || said.String() != "said\n" {
		t.Errorf("%v, %q", err, said.String())
	}
}

func TestConfinedTreeEndsWithItsContext(t *testing.T) {
	needKernel(t)
	p := newPlace(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := Confine(ctx, p.policy(policy.ReadOnly))
	if err != nil {
		t.Fatal(err)
	}
	read, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := p.bash("sleep " + forEver + " & echo $!; wait")
	cmd.Stdout = written
	if err := c.Start(cmd); err != nil {
		t.Fatal(err)
	}
	written.Close()
	child, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if report, err := c.Wait(); err == nil || report.Signal != unix.SIGTERM {
		t.Errorf("ended by %v (%v)", report.State, err)
	}
	if !isGone(t, strings.TrimSpace(child)) {
		t.Errorf("process %s is still there", child)
	}
	if _, err := Confine(ctx, p.policy(policy.ReadOnly)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
}

// TestOthersChildrenAreNotReaped keeps a child of this process that has ended
// while trees come and go.
func TestOthersChildrenAreNotReaped(t *testing.T) {
	other := exec.Command("sh", "-c", "exit 7")
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(out); err != nil {
		t.Fatal(err)
	}
	tree, _ := startTalking(t, StartTree, "sleep "+forEver+" & echo ready")
	if _, err := tree.Wait(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	if other.ProcessState == nil || other.ProcessState.ExitCode() != 7 {
		t.Errorf("the other child ended as %v", other.ProcessState)
	}
}

func TestParseStat(t *testing.T) {
	const rest = " S 10 20 30 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0"
	for _, row := range []struct {
		claim, stat string
		want        process
		ok          bool
	}{
		{"an ordinary name", "7 (sh)" + rest, process{7, 10, 20, 30, 'S', 4711}, true},
		{"a name with spaces and parentheses", "7 (a) R 1 (b))" + rest, process{7, 10, 20, 30, 'S', 4711}, true},
		{"a cut line", "7 (sh) S 10 20", process{}, false},
		{"no name", "7 sh" + rest, process{}, false},
		{"nothing", "", process{}, false},
	} {
		if got, ok := parseStat([]byte(row.stat)); ok != row.ok || ok && got != row.want {
			t.Errorf("%s: %+v, %v", row.claim, got, ok)
		}
	}
}

func TestMembersOf(t *testing.T) {
	const leader = 100
	procs := []process{
		{pid: leader, parent: 1, group: leader, session: leader, state: 'Z'},
		{pid: 101, parent: 1, group: leader, session: leader, state: 'S'},
		{pid: 102, parent: 101, group: 102, session: 102, state: 'S'},
		{pid: 103, parent: 1, group: 103, session: 103, state: 'S', start: 5},
		{pid: 104, parent: 1, group: 104, session: 104, state: 'S', start: 6},
		{pid: 105, parent: 104, group: 105, session: 105, state: 'S'},
		{pid: 106, parent: 101, group: leader, session: leader, state: 'Z'},
		{pid: 107, parent: 1, group: 107, session: 107, state: 'S', start: 9},
		{pid: 108, parent: 1, group: 108, session: 108, state: 'S'},
	}
	seen := map[int]uint64{103: 5, 107: 8} // the number 107 was given out again
	var got []int
	for _, p := range membersOf(leader, seen, procs, func(p process) bool { return p.pid == 104 }) {
		got = append(got, p.pid)
	}
	slices.Sort(got)
	if want := []int{101, 102, 103, 104, 105}; !slices.Equal(got, want) {
		t.Errorf("members %v, want %v", got, want)
	}
}

func TestMarkOf(t *testing.T) {
	session, call := "TMPDIR=/s.d/tmp", "DSH_CALL_ID=c"
	for _, row := range []struct {
		claim     string
		env, host []string
		want      []string
	}{
		{"session and call together", []string{"A=b", call, session}, nil, []string{session, call}},
		{"the last of a name counts", []string{"TMPDIR=/tmp", call, session}, nil, []string{session, call}},
		{"the call alone is in every session", []string{call}, nil, nil},
		{"empty ones", []string{"TMPDIR=", "DSH_CALL_ID="}, nil, nil},
		{"the host's own tell nothing", []string{session, call}, []string{session, call}, nil},
		{"a call of the host's session", []string{session, call}, []string{session}, []string{session, call}},
	} {
		if got := markOf(row.env, row.host); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.claim, got, row.want)
		}
	}
}
