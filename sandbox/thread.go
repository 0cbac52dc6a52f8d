package sandbox

import (
	"context"

	"github.com/dsh-run/dsh/policy"
)

// Do runs f on a thread that is restricted as a command under p would be and is
// thrown away afterwards. It returns what confined f, and f's error. What f
// opens by itself is judged by the kernel; a goroutine that f starts is not
// restricted. A panic in f comes back as an error.
//
// An *UnavailableError means that this machine has no backend that can confine
// a thread and that f did not run; the other errors of [Confine] mean the same.
func Do(ctx context.Context, p Policy, f func() error) (policy.Confinement, error) {
	c, err := confineBy(ctx, p, threadBackends())
	if err != nil {
		return policy.Confinement{}, err
	}
	err = c.restriction.(threadRestriction).do(f)
	if setup, ok := err.(*setupError); ok { // not errors.As: f's own error is f's
		return policy.Confinement{}, c.unavailable(setup)
	}
	return c.Confinement(), err
}

// threadRestriction is one that can confine a thread of this process.
type threadRestriction interface {
	restriction
	// do runs f inside. A *setupError means that f did not run.
	do(f func() error) error
}
