package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsh-run/dsh/runtime"
)

// errTimeLimit is the cause of a context that --timeout ended.
var errTimeLimit = errors.New("the time limit of --timeout passed")

// limited is ctx with the time limit of --timeout, if there is one. It is the
// clock on the wall: it runs on while a person is asked.
func (f *sessionFlags) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return f.limitedBy(ctx, errTimeLimit)
}

// limitedRun is limited for a program, whose failure it then is.
func (f *sessionFlags) limitedRun(ctx context.Context) (context.Context, context.CancelFunc) {
	return f.limitedBy(ctx, &runtime.Failure{
		Kind: runtime.Timeout, Clock: runtime.WallClock,
		Message: fmt.Sprintf("the run did not end within the time limit of %v", f.timeout),
	})
}

func (f *sessionFlags) limitedBy(ctx context.Context, cause error) (context.Context, context.CancelFunc) {
	if f.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, f.timeout, cause)
}
