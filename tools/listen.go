package tools

import (
	"context"
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

func (e *execution) ask(ctx context.Context, listeners []named[Listener]) (v Verdict) {
	if len(listeners) == 0 {
		return Verdict{Judgement: Allow}
	}
	l := listeners[0]
	defer func() {
		if r := recover(); r != nil {
			v = Verdict{Judgement: Deny, Reason: fmt.Sprintf("the listener %s panicked: %v", l.name, r), rule: l.name}
		}
	}()
	v = l.f(ctx, e.call.frozen(), func() Verdict { return e.ask(ctx, listeners[1:]) })
	if v.Judgement > Cancel {
		v = Verdict{Judgement: Deny, Reason: fmt.Sprintf("the listener %s answered with an unknown judgement %d", l.name, v.Judgement)}
	}
	if v.rule == "" {
		v.rule = l.name
	}
	return v
}

// guard lets each guard veto the call.
func (e *execution) guard(ctx context.Context) *Error {
	for _, g := range e.config.guards {
		if err := contain(func() error { return g.f(ctx, e.call.frozen()) }); err != nil {
			return e.deny(StageGuard, g.name, &Error{Code: DeniedByGuard, Message: fmt.Sprintf("denied by the guard %s: %v", g.name, err)})
		}
	}
	return nil
}

// contain runs f and makes a panic an error.
func contain(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	return f()
}
