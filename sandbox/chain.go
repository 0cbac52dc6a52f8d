package sandbox

import (
	"context"
	"os/exec"

	"github.com/dsh-run/dsh/policy"
)

// chain holds the backends of this platform in the order in which they are
// tried.
var chain = backends()

// backend is one way to confine.
type backend interface {
	name() string
	// probe says why this backend cannot confine here; nil when it can. What
	// it found is kept for the next call.
	probe(ctx context.Context) error
	// forget drops what a probe found, so that the next call probes again.
	forget()
	// confinement is what the backend enforces in mode. It follows a probe.
	confinement(mode policy.Mode) policy.Confinement
	// prepare does what can fail before there is a command.
	prepare(s policy.Scope, roots policy.Roots) (restriction, error)
}

// restriction is what a backend prepared for one call.
type restriction interface {
	// start starts cmd inside. A *setupError means that cmd never ran.
	start(cmd *exec.Cmd) error
	// do runs f inside, in this process. A *setupError means that f did not
	// run.
	do(f func() error) error
	// argv wraps a command line for callers that start it themselves.
	argv(argv []string) ([]string, bool)
	// denials are the errors that this backend gives instead of a file effect.
	denials() denials
}
