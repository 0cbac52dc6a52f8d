package main

import (
	"context"
	"errors"
	"fmt"
	"io"

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

// timedOut reports whether the time limit of --timeout ended ctx.
func timedOut(ctx context.Context) bool {
	cause, failure := context.Cause(ctx), (*runtime.Failure)(nil)
	return errors.Is(cause, errTimeLimit) || errors.As(cause, &failure) && failure.Kind == runtime.Timeout
}

// readStdin reads stdin to its end, or until ctx ends: whoever writes to it may
// never come to one. what is to be read is for the error.
func readStdin(ctx context.Context, stdin io.Reader, what string) ([]byte, error) {
	var data []byte
	ended := make(chan error, 1)
	go func() {
		var err error
		data, err = io.ReadAll(stdin)
		ended <- err
	}()
	select {
	case err := <-ended:
		if err != nil {
			err = usagef("read %s from stdin: %w", what, err)
		}
		return data, err
	case <-ctx.Done():
	}
	code := exitFailed // of a signal, which has its own code
	if timedOut(ctx) {
		code = exitTimeout
	}
	return nil, &exitError{code, fmt.Sprintf("read %s from stdin, which did not end: %v", what, context.Cause(ctx))}
}

func (f *sessionFlags) limitedBy(ctx context.Context, cause error) (context.Context, context.CancelFunc) {
	if f.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, f.timeout, cause)
}
