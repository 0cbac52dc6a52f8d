package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dsh-run/dsh/policy"
)

// Policy is what one call is confined to.
type Policy struct {
	// Scope holds the mode and the roots. Root is needed; in every mode it must
	// be a directory that exists.
	policy.Scope
	// SessionID names the session, for backends that keep something per
	// session. Default: none.
	SessionID string
	// RequireFull refuses a backend that can enforce the mode only partially.
	// Default: false, partial enforcement is reported and not refused.
	RequireFull bool
}

// cancelGrace is the time between TERM and KILL for a call whose context ends.
const cancelGrace = 3 * time.Second

// Confined is the confinement of one call. It starts at most one command.
type Confined struct {
	ctx         context.Context
	policy      Policy
	roots       policy.Roots
	confinement policy.Confinement
	backend     backend
	restriction restriction

	mu      sync.Mutex
	started bool
	tree    *Tree
	cwd     string
	unwatch func() bool
}

// Confine prepares the confinement of one call under p.
//
// Errors: *policy.RootError when a directory of p cannot be used;
// *UnavailableError when no backend works here, or, with RequireFull, none can
// enforce the mode in full; the error of ctx when it ended. When ctx ends
// later, the command's processes are killed.
//
// A policy of danger-full-access is a programmer error: that mode has no
// confinement (see StartTree).
func Confine(ctx context.Context, p Policy) (*Confined, error) {
	if p.Mode >= policy.DangerFullAccess {
		panic(fmt.Sprintf("sandbox: Confine was called in %s, a mode without confinement; use StartTree", p.Mode))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.Extra, p.Protected = slices.Clone(p.Extra), slices.Clone(p.Protected)
	unavailable := &UnavailableError{Mode: p.Mode, Tried: unsupported()}
	for _, b := range chain {
		c, refused, err := confineWith(ctx, b, p)
		switch {
		case err != nil:
			return nil, err
		case refused == nil:
			return c, nil
		}
		unavailable.Tried = append(unavailable.Tried, *refused)
	}
	return nil, unavailable
}

// confineWith returns the call's confinement, or why this backend is not to be
// used, or an error that no other backend could mend.
func confineWith(ctx context.Context, b backend, p Policy) (*Confined, *Attempt, error) {
	if err := b.probe(ctx); err != nil {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		return nil, &Attempt{Backend: b.name(), Reason: err.Error(), Err: err}, nil
	}
	confinement := b.confinement(p.Mode)
	if p.RequireFull && confinement.Enforcement != policy.Full {
		return nil, &Attempt{Backend: b.name(), Reason: fmt.Sprintf(
			"full enforcement is required, but these effects would go ungoverned: %s. Drop the requirement or choose a mode that can be enforced in full",
			strings.Join(partialReasons(confinement), ", "))}, nil
	}
	roots := policy.WritableRoots(p.Scope)
	r, err := b.prepare(p.Scope, roots)
	if setup, ok := errors.AsType[*setupError](err); ok {
		return nil, &Attempt{Backend: b.name(), Reason: setup.Error(), Err: setup}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return &Confined{ctx: ctx, policy: p, roots: roots, confinement: confinement, backend: b, restriction: r}, nil, nil
}

// partialReasons are the reasons that keep an enforcement from being full.
func partialReasons(c policy.Confinement) []string {
	return slices.DeleteFunc(slices.Clone(c.Reasons), func(r string) bool {
		return r != policy.MetadataWrites && r != policy.Truncate
	})
}

// Confinement says what confines the call and how completely. It is known
// before anything runs.
func (c *Confined) Confinement() policy.Confinement {
	confinement := c.confinement
	confinement.Reasons = slices.Clone(confinement.Reasons)
	return confinement
}

// Start starts cmd confined. It may be called once.
//
// The process gets a new session, core size 0 and no descriptors but its three
// streams. A stream that is nil is the null device. A stream that is a
// terminal may be opened for writing again by its name.
//
// Errors: that of a missing or unusable directory or program is what
// [exec.Cmd.Start] gives; *CommandError when cmd asks for ExtraFiles, a death
// signal, a process group or the foreground; *UnavailableError when the
// backend failed, in which case cmd did not run.
func (c *Confined) Start(cmd *exec.Cmd) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.started {
		panic("sandbox: Start was called twice on one Confined; each call needs its own Confine")
	}
	c.started = true
	if err := c.ctx.Err(); err != nil {
		return err
	}
	c.cwd = workingDirectory(cmd)
	tree, err := startTree(cmd, c.restriction.start)
	if setup, ok := errors.AsType[*setupError](err); ok {
		return c.unavailable(setup)
	}
	if err != nil {
		return err
	}
	c.tree = tree
	c.unwatch = context.AfterFunc(c.ctx, func() { tree.Kill(cancelGrace) })
	return nil
}

// unavailable is the error of a backend that failed after it was probed.
func (c *Confined) unavailable(err *setupError) error {
	c.backend.forget()
	return &UnavailableError{Mode: c.policy.Mode, Tried: []Attempt{{Backend: c.backend.name(), Reason: err.Error(), Err: err}}}
}

// Wait waits for the started command as [Tree.Wait] does. It is the only legal
// way to wait for it.
func (c *Confined) Wait() (Report, error) {
	c.mu.Lock()
	tree, unwatch := c.tree, c.unwatch
	c.mu.Unlock()
	if tree == nil {
		return Report{}, errNotStarted
	}
	defer unwatch()
	return tree.Wait()
}

var errNotStarted = errors.New("sandbox: Wait was called before a Start that succeeded")

// Kill ends the command as [Tree.Kill] does. Before Start it does nothing.
func (c *Confined) Kill(grace time.Duration) {
	c.mu.Lock()
	tree := c.tree
	c.mu.Unlock()
	if tree != nil {
		tree.Kill(grace)
	}
}

// Argv returns the command line that runs argv confined, for callers that
// start processes themselves. It is false for a backend that has no such form;
// Landlock on a thread has none.
func (c *Confined) Argv(argv []string) ([]string, bool) { return c.restriction.argv(argv) }

// Do runs f on a thread that is restricted as the command would be and is
// thrown away afterwards, and returns f's error. What f opens by itself is
// judged by the kernel; a goroutine that f starts is not restricted. A panic in
// f comes back as an error; an *UnavailableError means that f did not run.
// Do may be called many times and beside a started command.
func (c *Confined) Do(f func() error) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	err := c.restriction.do(f)
	if setup, ok := err.(*setupError); ok { // not errors.As: f's own error is f's
		return c.unavailable(setup)
	}
	return err
}

// Classify returns Confinement and, when the command was denied a file effect
// by the sandbox, what was denied. stderr is what the command wrote there, or
// its end; exit its exit code; sig the signal that ended it, or 0.
//
// A denial needs a diagnostic with an error that this backend can give, and
// that the host's user could have done what the path in it was refused. With
// exit code 0 only a denial at confidence ByPath is reported; it is then a
// note, not the reason of a failure.
func (c *Confined) Classify(stderr []byte, exit int, sig syscall.Signal) policy.Confinement {
	c.mu.Lock()
	cwd := c.cwd
	c.mu.Unlock()
	confinement := c.Confinement()
	verdict := classify(stderr, exit, sig, c.restriction.denials(), world{
		roots:      c.roots,
		cwd:        cwd,
		resolve:    resolvePath,
		writable:   hostCouldWrite,
		owned:      hostCouldChangeMetadata,
		sealed:     onReadOnlyFileSystem,
		runnable:   hostCouldRun,
		sameDevice: onSameDevice,
	})
	confinement.Denied, confinement.Op = verdict.denied, verdict.op
	confinement.Path, confinement.Confidence = verdict.path, verdict.confidence
	return confinement
}

func workingDirectory(cmd *exec.Cmd) string {
	if cmd.Dir != "" {
		return cmd.Dir
	}
	if cwd, err := os.Getwd(); err == nil {
		return cwd
	}
	return ""
}
