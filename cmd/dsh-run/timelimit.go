package main

import (
	"context"
	"errors"
)

// errTimeLimit is the cause of a context that --timeout ended.
var errTimeLimit = errors.New("the time limit of --timeout passed")

// limited is ctx with the time limit of --timeout, if there is one.
func (f *sessionFlags) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, f.timeout, errTimeLimit)
}
