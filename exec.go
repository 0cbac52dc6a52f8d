package dsh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/sandbox"
	"github.com/dsh-run/dsh/session"
)

// ExecEnd is how a command of [Session.Exec] ended.
type ExecEnd struct {
	// ExitCode of the command; -1 when a signal ended it.
	ExitCode int
	// Signal that ended it, 0 for none.
	Signal syscall.Signal
	// Confinement says what confined it and whether that denied it something.
	Confinement policy.Confinement
	// Leftovers is how many of its processes outlived it and were ended.
	Leftovers int
	Duration  time.Duration
}

type execStart struct {
	ID   string      `json:"id"`
	Argv []string    `json:"argv"`
	Cwd  string      `json:"cwd"`
	Mode policy.Mode `json:"mode"`
}

type execEnd struct {
	ID          string              `json:"id"`
	ExitCode    *int                `json:"exit_code,omitempty"`
	Signal      string              `json:"signal,omitempty"`
	Error       *execError          `json:"error,omitempty"`
	Confinement *policy.Confinement `json:"confinement,omitempty"`
	Leftovers   int                 `json:"leftovers,omitempty"`
	DurationMS  int64               `json:"duration_ms"`
}

type execError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// execPrefix begins the ids of commands.
const execPrefix = "x"

// execFailed is the code of a command that did not run.
const execFailed = "EXEC_FAILED"

// stderrTail is how much of a command's stderr is looked at for denials.
const stderrTail = 64 << 10

// Exec runs a command in the session's mode and waits for its end. It is no
// tool: no listener or guard sees it. Its directory is the workspace unless cmd
// has one; TMPDIR is added to its environment. When ctx ends, the command and
// what it started are killed. The log has its start and its end.
//
// The error is for a command that did not run: [exec.ErrNotFound] and other
// start errors, *sandbox.UnavailableError, *ReachError, ErrClosed.
func (s *Session) Exec(ctx context.Context, cmd *exec.Cmd) (ExecEnd, error) {
	ctx, done, err := s.enter(ctx)
	if err != nil {
		return ExecEnd{}, err
	}
	defer done()
	state := s.Permissions().State()
	scope := policy.Scope{Mode: state.Mode, Root: state.Root, Temp: s.Log().TempDir(), Extra: s.reach.extra, Worktree: state.Worktree}
	if err := s.reach.check(scope); err != nil {
		return ExecEnd{}, err
	}
	if cmd.Dir == "" {
		cmd.Dir = state.Root
	}
	cmd.Env = append(cmd.Environ(), "TMPDIR="+s.Log().TempDir())
	start := execStart{ID: execPrefix + strconv.FormatInt(s.execs.Add(1), 10), Argv: cmd.Args, Cwd: cmd.Dir, Mode: state.Mode}
	if _, err := s.Log().Append(session.ExecStart, start); err != nil {
		return ExecEnd{}, fmt.Errorf("the command could not be logged, so it did not run: %w", err)
	}
	begun := time.Now()
	end, err := execIn(ctx, sandbox.Policy{Scope: scope, SessionID: s.Log().ID(), RequireFull: s.full, Chain: s.chain}, cmd)
	end.Duration = time.Since(begun)
	if logErr := s.logExec(start.ID, end, err); err == nil && logErr != nil {
		err = fmt.Errorf("the command ended with exit code %d, but its end could not be logged: %w", end.ExitCode, logErr)
	}
	return end, err
}

func (s *Session) logExec(id string, end ExecEnd, err error) error {
	e := execEnd{ID: id, DurationMS: end.Duration.Milliseconds(), Leftovers: end.Leftovers}
	if err != nil {
		e.Error = &execError{Code: execFailed, Message: err.Error()}
	} else {
		e.ExitCode, e.Confinement = &end.ExitCode, &end.Confinement
	}
	if end.Signal != 0 {
		e.Signal = end.Signal.String()
	}
	if _, err := s.Log().Append(session.ExecEnd, e); err != nil {
		return err
	}
	return s.Log().Sync()
}

// execIn runs cmd with the file effects that p allows.
func execIn(ctx context.Context, p sandbox.Policy, cmd *exec.Cmd) (ExecEnd, error) {
	if p.Mode == policy.DangerFullAccess {
		return execFree(ctx, cmd)
	}
	confined, err := sandbox.Confine(ctx, p)
	if err != nil {
		return ExecEnd{}, err
	}
	stderr := &tail{}
	cmd.Stderr = stderr.behind(cmd.Stderr)
	if err := confined.Start(cmd); err != nil {
		return ExecEnd{}, err
	}
	report, err := confined.Wait()
	end, err := endOf(report, err)
	if err != nil {
		return end, err
	}
	end.Confinement, err = confined.Classify(stderr.bytes(), end.ExitCode, end.Signal)
	return end, err
}

// grace is the time between TERM and KILL for an unconfined command.
const grace = 3 * time.Second

func execFree(ctx context.Context, cmd *exec.Cmd) (ExecEnd, error) {
	tree, err := sandbox.StartTree(cmd)
	if err != nil {
		return ExecEnd{}, err
	}
	defer context.AfterFunc(ctx, func() { tree.Kill(grace) })()
	report, err := tree.Wait()
	end, err := endOf(report, err)
	end.Confinement = policy.Unconfined()
	return end, err
}

// endOf reads the exit of a command whose Wait returned; an exit code other
// than 0 is no error.
func endOf(r sandbox.Report, waitErr error) (ExecEnd, error) {
	unavailable := (*sandbox.UnavailableError)(nil)
	if r.State == nil || errors.As(waitErr, &unavailable) {
		return ExecEnd{}, waitErr
	}
	return ExecEnd{ExitCode: r.ExitCode, Signal: r.Signal, Leftovers: r.Leftovers}, nil
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

// behind returns a writer that gives w everything first.
func (t *tail) behind(w io.Writer) io.Writer {
	if w == nil {
		return t
	}
	return io.MultiWriter(w, t)
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - stderrTail; over > stderrTail {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) bytes() []byte { return t.kept[max(0, len(t.kept)-stderrTail):] }
