package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// dispatch runs the body inside its wrappers.
func (e *execution) dispatch(ctx context.Context) (json.RawMessage, *Error) {
	if ctx.Err() != nil {
		return nil, abortedBefore(ctx)
	}
	body := e.retry(e.timeout(e.attempt))
	for _, w := range slices.Backward(e.config.wrappers) {
		body = e.wrap(w, body)
	}
	value, err := body(ctx, e.call)
	if err == nil && ctx.Err() == nil {
		return value, nil
	}
	return nil, e.failure(ctx, err)
}

// wrap contains a wrapper: a panic in it fails the call.
func (e *execution) wrap(w named[Wrapper], next Body) Body {
	return func(ctx context.Context, call *Call) (value json.RawMessage, err error) {
		defer func() {
			if r := recover(); r != nil {
				value, err = nil, &Error{Code: ToolFailed, Message: fmt.Sprintf("the wrapper %s panicked: %v", w.name, r)}
			}
		}()
		return w.f(next)(ctx, call)
	}
}

// attempt is the innermost body: the guards once more, then the tool.
func (e *execution) attempt(ctx context.Context, call *Call) (json.RawMessage, error) {
	if err := e.guard(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil && !e.started {
		return nil, abortedBefore(ctx)
	}
	e.started = true
	var value json.RawMessage
	err := contain(func() (err error) {
		value, err = e.tool.Handle(ctx, call)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := e.tool.value(value); err != nil {
		return nil, err
	}
	return value, nil
}

// failure is the one translation from a body's error to the call's.
func (e *execution) failure(ctx context.Context, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if ctx.Err() != nil {
		return &Error{Code: Aborted, Message: "cancelled while it ran: " + context.Cause(ctx).Error()}
	}
	return &Error{Code: ToolFailed, Message: err.Error()}
}
