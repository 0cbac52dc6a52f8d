package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Tree is a started process together with what it starts in turn.
type Tree struct {
	cmd    *exec.Cmd
	inner  inner
	family family

	mu      sync.Mutex
	over    bool // the process is about to be reaped: its number may be reused
	killing bool
	killAt  time.Time
	timer   *time.Timer
}

const (
	// leftoverGrace is the time that what outlives the started process gets
	// between TERM and KILL.
	leftoverGrace = 250 * time.Millisecond
	// pipeGrace bounds the wait for streams that are not files and that a
	// process which could not be found keeps open.
	pipeGrace = 500 * time.Millisecond
)

// StartTree starts cmd without any confinement: in its own session, with core
// size 0, and without descriptors but its three streams. It is for
// danger-full-access; see [Confine] for everything else. Its errors are those
// of [exec.Cmd.Start], or a *CommandError as of [Confined.Start].
func StartTree(cmd *exec.Cmd) (*Tree, error) {
	return startTree(cmd, func(cmd *exec.Cmd) (inner, error) { return nil, cmd.Start() })
}

// startTree checks cmd, lets start start it, and takes care of its processes.
func startTree(cmd *exec.Cmd, start func(*exec.Cmd) (inner, error)) (*Tree, error) {
	if err := checkCommand(cmd); err != nil {
		return nil, err
	}
	prepareCommand(cmd)
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = pipeGrace
	}
	inside, err := start(cmd)
	if err != nil {
		return nil, err
	}
	// It fails for who became another user at once, whose cores the kernel
	// withholds by itself.
	_ = dropCores(cmd.Process.Pid)
	t := &Tree{cmd: cmd, inner: inside, family: newFamily(cmd, inside)}
	live.Store(t, true)
	return t, nil
}

// live are the trees that nobody has waited for.
var live sync.Map

// KillAll kills every tree that this process started and that has not ended,
// confined or not, as far as its processes can be found. It is for a program
// that is about to exit and cannot wait.
func KillAll() {
	live.Range(func(t, _ any) bool {
		t.(*Tree).killNow()
		return true
	})
}

// Report is what is known of a command after its end.
type Report struct {
	// State is that of the started process, which may be a backend's runner;
	// nil when it could not be waited for.
	State *os.ProcessState
	// ExitCode of the command; -1 when a signal ended it or it is not known.
	ExitCode int
	// Signal that ended it, 0 for none. Behind a runner only a signal that Kill
	// sent is known as one; others are exit code 128+n, as in shells.
	Signal syscall.Signal
	// Leftovers is the number of processes that outlived the started one and
	// were then ended. Those that left its session, lost their parent and
	// changed their environment cannot be found.
	Leftovers int
}

// Wait waits for the end of the started process, whoever else still holds its
// streams, and then ends what is left of its tree: TERM, and KILL after a
// short grace. It must be called exactly once; [exec.Cmd.Wait] must not be.
//
// Its error is that of exec.Cmd.Wait. Streams should be files, or pipes that
// the caller reads: for other writers, copying ends half a second after the
// process at the latest, with [exec.ErrWaitDelay], unless cmd.WaitDelay says
// otherwise.
func (t *Tree) Wait() (Report, error) {
	leftovers, err := t.wait()
	report := Report{State: t.cmd.ProcessState, ExitCode: -1, Leftovers: leftovers}
	if report.State == nil {
		return report, err
	}
	report.ExitCode, report.Signal = report.State.ExitCode(), signalOf(report.State)
	if t.inner != nil {
		exit, sig, broken := t.inner.end(report.State)
		if broken != nil {
			return report, broken
		}
		report.ExitCode, report.Signal = exit, sig
		t.readSignal(&report)
	}
	return report, err
}

// readSignal reads an exit code behind a runner as the signal that Kill sent.
func (t *Tree) readSignal(r *Report) {
	sig := syscall.Signal(r.ExitCode - 128)
	if _, killed := t.killTime(); killed && (sig == syscall.SIGTERM || sig == syscall.SIGKILL) {
		r.ExitCode, r.Signal = -1, sig
	}
}

// signalOf is the signal that ended a process, or 0.
func signalOf(state *os.ProcessState) syscall.Signal {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal()
	}
	return 0
}

// finish forbids signals to the process from here on and ends the timer.
func (t *Tree) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	live.Delete(t)
	if t.timer != nil {
		t.timer.Stop()
	}
}

// Kill ends the tree: TERM now and KILL after grace, to every process of it
// that can be found; KILL now if grace is not positive. It returns at once;
// Wait returns when the tree has ended. Further calls can only shorten the
// grace, and a tree that has ended is left alone. It is safe beside Wait.
func (t *Tree) Kill(grace time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := time.Now().Add(max(grace, 0))
	switch {
	case t.over:
	case !t.killing:
		t.killing, t.killAt = true, at
		if grace > 0 {
			t.family.terminate()
		}
		t.timer = time.AfterFunc(max(grace, 0), t.killNow)
	case at.Before(t.killAt):
		t.killAt = at
		t.timer.Reset(max(grace, 0))
	}
}

func (t *Tree) killNow() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.family.kill()
	}
}

// killTime is when KILL is due, if Kill was called.
func (t *Tree) killTime() (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.killAt, t.killing
}

// checkCommand says what is wrong with cmd itself, in the order in which a
// start would find it.
func checkCommand(cmd *exec.Cmd) error {
	if cmd.Process != nil {
		return errors.New("exec: already started")
	}
	if cmd.Err != nil {
		return cmd.Err
	}
	if len(cmd.ExtraFiles) > 0 {
		return &CommandError{"it has ExtraFiles; only the three streams are handed on, since an open directory leads out of any sandbox"}
	}
	if err := checkAttributes(cmd.SysProcAttr); err != nil {
		return err
	}
	if err := checkDirectory(cmd.Dir); err != nil {
		return err
	}
	return checkProgram(cmd)
}
