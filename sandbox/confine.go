package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
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
	// Chain says what may confine the call. Default: every backend of this
	// platform.
	Chain Chain
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
	inner   inner
	guard   *vcsGuard // in workspace-write
	undone  []policy.Undone
	unsure  bool // the guard could not do its work
	cwd     string
	argv    []string // with env, what the command line speaks of
	env     []string
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
	if err := p.Chain.Check(); err != nil {
		return nil, err
	}
	return confineBy(ctx, p, p.Chain.backends())
}

// confineBy uses the first of the backends that can confine the call.
func confineBy(ctx context.Context, p Policy, backends []backend) (*Confined, error) {
	p.Extra, p.Protected = slices.Clone(p.Extra), slices.Clone(p.Protected)
	c := &Confined{ctx: ctx, policy: p, roots: policy.WritableRoots(p.Scope)}
	unavailable := &UnavailableError{Mode: p.Mode, Tried: unsupported()}
	candidates := chosen{backends: backends, scope: p.Scope}
	for i, b := range backends {
		reason := candidates.verdict(ctx, i)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if reason == nil {
			reason = c.use(b)
		}
		switch {
		case reason == nil:
			return c, nil
		case isCallers(reason):
			return nil, reason
		}
		unavailable.Tried = append(unavailable.Tried, Attempt{Backend: b.name(), Reason: reason.Error(), Err: reason})
	}
	return nil, unavailable
}

// isCallers reports an error of the call itself, which no backend could mend.
func isCallers(err error) bool {
	_, callers := errors.AsType[*policy.RootError](err)
	return callers
}

// use prepares the call's confinement by b.
func (c *Confined) use(b backend) error {
	confinement := b.confinement(c.policy.Mode)
	if c.policy.RequireFull && confinement.Enforcement != policy.Full {
		return &partialError{partialReasons(confinement)}
	}
	r, err := b.prepare(c.policy.Scope, c.roots)
	if err != nil {
		return err
	}
	c.confinement, c.backend, c.restriction = confinement, b, r
	return nil
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
	c.cwd, c.argv, c.env = workingDirectory(cmd), cmd.Args, cmd.Env
	c.remember()
	tree, err := startTree(cmd, c.begin)
	if err != nil && c.guard != nil {
		c.guard.drop()
	}
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

// remember notes what is there that the command must not replace. Where that
// cannot be read, nothing is claimed of it.
func (c *Confined) remember() {
	if c.confinement.VCSHooks != policy.HooksChecked {
		return
	}
	guard, err := guardVCS(c.policy.Root, c.roots)
	c.guard, c.unsure = guard, err != nil
}

func (c *Confined) begin(cmd *exec.Cmd) (_ inner, err error) {
	c.inner, err = c.restriction.start(cmd)
	return c.inner, err
}

// unavailable is the error of a backend that failed after it was probed.
func (c *Confined) unavailable(err *setupError) error {
	c.backend.forget()
	return &UnavailableError{Mode: c.policy.Mode, Tried: []Attempt{{Backend: c.backend.name(), Reason: err.Error(), Err: err}}}
}

// Wait waits for the started command as [Tree.Wait] does. It is the only legal
// way to wait for it. A command that never ran, since the backend failed after
// Start, ends as *UnavailableError.
func (c *Confined) Wait() (Report, error) {
	c.mu.Lock()
	tree, unwatch := c.tree, c.unwatch
	c.mu.Unlock()
	if tree == nil {
		return Report{}, errNotStarted
	}
	defer unwatch()
	report, err := tree.Wait()
	c.takeBack()
	if setup, ok := errors.AsType[*setupError](err); ok {
		return report, c.unavailable(setup)
	}
	return report, err
}

// takeBack undoes what the command planted.
func (c *Confined) takeBack() {
	if c.guard == nil {
		return
	}
	undone, err := c.guard.check()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.undone, c.unsure = undone, err != nil
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

// Argv returns the command line that runs argv confined in dir, for callers
// that start processes themselves and then ask Classify. They must hand on no
// descriptors but the three streams. It is false for a backend that has no such
// form; Landlock on a thread has none.
func (c *Confined) Argv(argv []string, dir string) ([]string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cwd, c.argv = dir, argv
	return c.restriction.argv(argv, dir)
}

// Classify returns Confinement and, when the command was denied a file effect
// by the sandbox, what was denied. stderr is what the command wrote there, or
// its end; exit its exit code; sig the signal that ended it, or 0.
//
// A denial needs a diagnostic with an error that this backend can give, and
// that the host's user could have done what the path in it was refused. With
// exit code 0 only a denial at confidence ByPath is reported; it is then a
// note, not the reason of a failure.
//
// The error is an *UnavailableError when the backend's own runner failed and
// the command never ran. A command that Start started and Wait has waited for
// is known to have run, except for a [Runner], which can tell only here.
func (c *Confined) Classify(stderr []byte, exit int, sig syscall.Signal) (policy.Confinement, error) {
	c.mu.Lock()
	cwd, argv, env, ran := c.cwd, c.argv, c.env, c.inner != nil
	undone, unsure := c.undone, c.unsure
	c.mu.Unlock()
	confinement := c.Confinement()
	confinement.Undone = slices.Clone(undone)
	if unsure {
		confinement.VCSHooks = policy.HooksNone
	}
	if !ran {
		if err := c.restriction.failure(stderr, exit, sig); err != nil {
			return confinement, c.unavailable(&setupError{c.backend.name(), err})
		}
	}
	verdict := classify(stderr, exit, sig, c.restriction.denials(), world{
		roots:      c.roots,
		cwd:        cwd,
		resolve:    resolvePath,
		writable:   hostCouldWrite,
		owned:      hostCouldChangeMetadata,
		sealed:     onReadOnlyFileSystem,
		runnable:   hostCouldRun,
		privileged: hostNeedsPrivilege,
		said:       sync.OnceValue(func() mentions { return mentionsOf(argv, env) }),
		sameDevice: onSameDevice,
	})
	confinement.Denied, confinement.Op = verdict.denied, verdict.op
	confinement.Path, confinement.Confidence = verdict.path, verdict.confidence
	return confinement, nil
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
