package tools

import (
	"context"
	"errors"
	"fmt"
)

// listen asks the chain of listeners.
func (e *execution) listen(ctx context.Context) *Error {
	e.verdict = e.ask(ctx, e.config.listeners)
	switch e.verdict.Judgement {
	case Allow, AskPerson:
		return nil
	case Cancel:
		if ctx.Err() != nil {
			return abortedBefore(ctx)
		}
	}
	code := e.verdict.Code
	if code == "" {
		code = DeniedByListener
	}
	return e.deny(StageListener, e.verdict.rule, &Error{Code: code, Message: "denied: " + e.verdict.Reason, Details: e.verdict.Details})
}

// ask is listeners[0](listeners[1](…(allow))).
func (e *execution) ask(ctx context.Context, listeners []named[Listener]) Verdict {
	if len(listeners) == 0 {
		return Verdict{Judgement: Allow}
	}
	l := listeners[0]
	v := e.hear(ctx, l, func() Verdict { return e.ask(ctx, listeners[1:]) })
	if v.Judgement > Cancel {
		v = Verdict{Judgement: Deny, Reason: fmt.Sprintf("the listener %s answered with an unknown judgement %d", l.name, v.Judgement)}
	}
	if v.rule == "" {
		v.rule = l.name
	}
	return v
}

// hear asks one listener. It asks the ones inside of it only until it has
// answered itself.
func (e *execution) hear(ctx context.Context, l named[Listener], next func() Verdict) (v Verdict) {
	var inner turn
	err := contain(func() error {
		v = l.f(ctx, e.call.frozen(), func() Verdict {
			if !inner.take() {
				return Verdict{Judgement: Deny, Reason: fmt.Sprintf("the listener %s asked on after it had answered", l.name)}
			}
			defer inner.give()
			return next()
		})
		return nil
	})
	inner.end(func() {})
	if err != nil {
		return Verdict{Judgement: Deny, Reason: fmt.Sprintf("the listener %s failed: %v", l.name, err), rule: l.name}
	}
	return v
}

// guard lets each guard veto the call, in the mode that it would run in, so
// that nobody is asked for a wider mode which a guard will veto.
func (e *execution) guard(ctx context.Context) *Error {
	for _, g := range e.config.guards {
		err := contain(func() error { return g.f(ctx, e.wanted()) })
		if err == nil {
			continue
		}
		if gaveUp(ctx, err) {
			return e.aborted(ctx)
		}
		return e.deny(StageGuard, g.name, &Error{Code: DeniedByGuard, Message: fmt.Sprintf("denied by the guard %s: %v", g.name, err)})
	}
	return nil
}

// gaveUp reports whether err only says that ctx ended.
func gaveUp(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}
