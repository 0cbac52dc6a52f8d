package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// dispatch runs the body inside its wrappers: the first registered one is the
// outermost, a(b(c(body))) for Wrap(a), Wrap(b), Wrap(c).
func (e *execution) dispatch(ctx context.Context) (json.RawMessage, *Error) {
	if ctx.Err() != nil {
		return nil, e.aborted(ctx)
	}
	r := &run{execution: e}
	r.ctx, r.leave = context.WithCancelCause(ctx)
	defer r.leave(nil)
	defer r.call.facts.close()
	body := r.body
	for _, w := range slices.Backward(e.config.wrappers) {
		body = r.wrap(w, body)
	}
	_, err := body(r.ctx, e.call)
	return r.outcome(ctx, err)
}

// run is the body of one call inside its wrappers. It keeps what the body
// really did, so that no wrapper can tell it otherwise.
type run struct {
	*execution
	ctx   context.Context // ends with the call's, and when a wrapper leaves a running body
	leave context.CancelCauseFunc
	veto  *Error          // of a guard; it is final
	value json.RawMessage // of the last attempt
	err   error           // of the last attempt
}

// body is what the innermost wrapper calls: one attempt, or more where the
// failure and the tool allow it. Whatever context it is given, it ends with
// the call's.
func (r *run) body(ctx context.Context, _ *Call) (json.RawMessage, error) {
	ctx, stop := bothOf(ctx, r.ctx)
	defer stop()
	for n := 0; ; n++ {
		if err := r.admit(ctx); err != nil {
			return nil, err
		}
		r.value, r.err = r.timed(ctx)
		if r.err == nil {
			return r.handed(), nil
		}
		if !r.again(ctx, n) {
			return nil, r.err
		}
	}
}

// handed is the value as it goes to the wrappers, which may write into it.
func (r *run) handed() json.RawMessage {
	if len(r.config.wrappers) == 0 {
		return r.value
	}
	return bytes.Clone(r.value)
}

// bothOf is ctx, ending with outer too.
func bothOf(ctx, outer context.Context) (context.Context, func()) {
	if ctx == nil || ctx == outer {
		return outer, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(outer, func() { cancel(context.Cause(outer)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// admit stands before each attempt: the guards, the context, the log.
func (r *run) admit(ctx context.Context) error {
	if r.veto != nil {
		return r.veto
	}
	if err := r.guard(ctx); err != nil && r.deniedBy != nil {
		r.veto = err
		return err
	}
	for _, c := range []context.Context{r.ctx, ctx} {
		if c.Err() != nil {
			return r.unattempted(c)
		}
	}
	return r.begin()
}

// unattempted is the error of an attempt that ctx came before.
func (r *run) unattempted(ctx context.Context) error {
	if r.err != nil {
		return r.err
	}
	return context.Cause(ctx)
}

// begin marks an attempt as started, the first one in the log.
func (r *run) begin() error {
	if !r.started {
		if err := r.logStarted(); err != nil {
			return &Error{Code: LogFailed, Message: "the start could not be logged, so the call did not run: " + err.Error()}
		}
	}
	r.started = true
	r.attempts++
	return nil
}

// handle runs the tool. The value is a copy that the tool does not hold.
func (r *run) handle(ctx context.Context) (json.RawMessage, error) {
	var value json.RawMessage
	call := r.call.copied()
	call.facts = &facts{}
	r.attempt = call.facts
	err := contain(func() (err error) {
		value, err = r.tool.Handle(ctx, call)
		return err
	})
	r.attempt.close()
	r.returned = err == nil
	if err != nil {
		return nil, err
	}
	value = bytes.Clone(value)
	if err := r.tool.value(value); err != nil {
		return nil, err
	}
	return value, nil
}

// outcome is the one translation from what the body did, and what the wrappers
// made of it, to the call's value or failure.
func (r *run) outcome(ctx context.Context, err error) (json.RawMessage, *Error) {
	switch {
	case r.veto != nil:
		return nil, r.veto
	case ctx.Err() != nil:
		if own := ownError(r.err); own != nil {
			return nil, own
		}
		return nil, r.aborted(ctx)
	case err != nil:
		if own := ownError(err); own != nil {
			return nil, own
		}
		return nil, &Error{Code: ToolFailed, Message: fmt.Sprint(err)}
	}
	return r.value, nil
}

// ownError is a copy of the *Error in err, nil if there is none.
func ownError(err error) *Error {
	var own *Error
	if !errors.As(err, &own) || own == nil {
		return nil
	}
	own = own.copied()
	if own.Code == "" {
		own.Code = ToolFailed
	}
	return own
}

// aborted is the failure of a call whose context ended.
func (e *execution) aborted(ctx context.Context) *Error {
	if !e.started {
		return abortedBefore(ctx)
	}
	return &Error{Code: Aborted, Message: "cancelled while it ran: " + context.Cause(ctx).Error()}
}
