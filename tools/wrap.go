package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// errLeft is why a body's context ends when its wrapper returned before it.
var errLeft = errors.New("the wrapper around the body returned while the body ran")

// errReturned is what a wrapper gets that calls on after it has returned.
var errReturned = errors.New("the wrapper has returned; it cannot run the body any more")

// layer is one wrapper around what is inside of it.
type layer struct {
	run   *run
	name  string
	next  Body
	inner turn
	calls int
	err   error // of the last call of next
}

// wrap holds a wrapper to its contract: it returns what the body did, or an
// error.
func (r *run) wrap(w named[Wrapper], next Body) Body {
	return func(ctx context.Context, _ *Call) (value json.RawMessage, err error) {
		l := &layer{run: r, name: w.name, next: next}
		panicked := contain(func() error {
			value, err = w.f(l.call)(ctx, r.call.copied())
			return nil
		})
		left := l.inner.end(func() { r.leave(errLeft) })
		if panicked != nil {
			return nil, fmt.Errorf("the wrapper %s failed: %w", w.name, panicked)
		}
		if err := l.check(value, err, left); err != nil {
			return nil, err
		}
		return value, nil
	}
}

// call is the next that the wrapper gets. What it passes as the call is not
// looked at.
func (l *layer) call(ctx context.Context, _ *Call) (json.RawMessage, error) {
	if !l.inner.take() {
		return nil, errReturned
	}
	defer l.inner.give()
	value, err := l.next(ctx, nil)
	l.calls, l.err = l.calls+1, err
	return value, err
}

// check returns the error that the wrapper's answer amounts to.
func (l *layer) check(value json.RawMessage, err error, left bool) error {
	switch {
	case l.calls == 0 && err != nil:
		return fmt.Errorf("the wrapper %s did not run the body: %v", l.name, err)
	case l.calls == 0:
		return fmt.Errorf("the wrapper %s did not run the body", l.name)
	case err != nil:
		return err
	case left:
		return fmt.Errorf("the wrapper %s returned while the body ran", l.name)
	case l.err != nil:
		return fmt.Errorf("the wrapper %s made a success of a failure: %v", l.name, l.err)
	case !bytes.Equal(value, l.run.value):
		return fmt.Errorf("the wrapper %s returned another value than the body", l.name)
	}
	return nil
}
