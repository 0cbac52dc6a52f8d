package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dsh-run/dsh/policy"
)

// Chain says what may confine a call, and in which order. The zero value is
// every backend of this platform, in its own order.
type Chain struct {
	// Backends are the names of those to try, in this order. Default: all of
	// [Backends].
	Backends []string
	// Runner is the operator's own way to confine; with it no backend is tried.
	// Default: none.
	Runner *Runner
}

// Backends returns the names of this platform's backends, in the order in
// which they are tried.
func Backends() []string {
	names := make([]string, len(installed))
	for i, b := range installed {
		names[i] = b.name()
	}
	return names
}

// Check returns a *ChainError for a chain that names a backend which this
// platform does not have, or one twice, or whose runner cannot be used.
func (c Chain) Check() error {
	if c.Runner != nil {
		return c.Runner.check()
	}
	for i, name := range c.Backends {
		switch {
		case !slices.Contains(Backends(), name):
			return &ChainError{fmt.Sprintf("there is no backend %q on this platform; it has %s", name, orNone(Backends()))}
		case slices.Contains(c.Backends[:i], name):
			return &ChainError{fmt.Sprintf("the backend %q is named twice", name)}
		}
	}
	return nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// backends are those of the chain. Names that this platform does not have were
// refused by Check.
func (c Chain) backends() []backend {
	switch {
	case c.Runner != nil:
		return []backend{runnerBackend{c.Runner}}
	case len(c.Backends) == 0:
		return installed
	}
	var list []backend
	for _, name := range c.Backends {
		if i := slices.IndexFunc(installed, func(b backend) bool { return b.name() == name }); i >= 0 {
			list = append(list, installed[i])
		}
	}
	return list
}

// installed holds the backends of this platform in the order in which they are
// tried.
var installed = backends()

// backend is one way to confine.
type backend interface {
	name() string
	// probe says why this backend cannot confine here; nil when it can. What
	// it found is kept for the next call. A *slowProbeError is no verdict.
	probe(ctx context.Context, s policy.Scope, limit time.Duration) error
	// known reports whether a probe has found that it works and still counts.
	known(s policy.Scope) bool
	// forget drops what a probe found, so that the next call probes again.
	forget()
	// confinement is what the backend enforces in mode. It follows a probe.
	confinement(mode policy.Mode) policy.Confinement
	// prepare does what can fail before there is a command.
	prepare(s policy.Scope, roots policy.Roots) (restriction, error)
}

// restriction is what a backend prepared for one call.
type restriction interface {
	// start starts cmd inside and returns what knows its processes. A
	// *setupError means that cmd never ran.
	start(cmd *exec.Cmd) (inner, error)
	// argv wraps a command line for callers that start it themselves.
	argv(argv []string, dir string) ([]string, bool)
	// denials are the errors that this backend gives instead of a file effect.
	denials() denials
	// failure reads from how a runner ended that the command never ran; nil
	// when it did, or for a backend without a runner.
	failure(stderr []byte, exit int, sig syscall.Signal) error
}

// inner is what a backend knows of the command inside the process that it
// started. nil stands for a process that is the command itself.
type inner interface {
	// own reports whether the process is the backend's and not the command's.
	// It must not be asked to end, and is no leftover.
	own(pid int) bool
	// end says how the command ended, from how the started process did. A
	// *setupError means that the command never ran.
	end(state *os.ProcessState) (exit int, sig syscall.Signal, err error)
}
