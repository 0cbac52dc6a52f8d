package toolstest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/dsh-run/dsh/tools"
)

// The claims about wrappers.
const (
	runsBody     claim = "runs the body, or returns an error"
	oneSuccess   claim = "does not run a body again that has succeeded"
	givesUp      claim = "gives up on a body that always fails"
	inTurn       claim = "runs the body once at a time"
	noLateBody   claim = "does not run the body after it has returned"
	waits        claim = "returns only after the body has returned"
	keepsFailure claim = "does not make a failure a success"
	keepsValue   claim = "returns the value that the body returned"
	keepsContext claim = "gives the body a context that ends with the caller's"
	keepsValues  claim = "gives the body a context with the caller's values and deadline"
)

// Wrapper checks that w behaves as every wrapper must: that it returns, also
// when the context has ended, panics on no call, may run concurrently, leaves
// the call alone, runs the body at most 16 times, never at the same time, never
// after it has succeeded and never after having returned itself, hands on its
// value and its failure, and keeps the caller's context.
func Wrapper(t *testing.T, w tools.Wrapper) {
	t.Helper()
	wrapper(w).run(t)
}

func wrapper(w tools.Wrapper) subject {
	return subject{
		install: func(r *tools.Registry, p *probe) { r.Wrap("under test", p.wrapper(w)) },
		claims:  []claim{runsBody, oneSuccess, givesUp, inTurn, noLateBody, keepsFailure, keepsValue, keepsValues},
		inside:  []claim{endsInside, waits, keepsContext},
	}
}

func (p *probe) wrapper(w tools.Wrapper) tools.Wrapper {
	return func(next tools.Body) tools.Body {
		return func(ctx context.Context, call *tools.Call) (value json.RawMessage, err error) {
			b := &bodies{probe: p, next: next, caller: ctx, returned: make(chan struct{})}
			defer b.close()
			err = errors.New("the wrapper panicked")
			p.watch(call, nil, func() {
				value, err = w(b.run)(ctx, call)
				b.compare(value, err)
			})
			return value, err
		}
	}
}

// bodies counts the runs of one call's body.
type bodies struct {
	probe    *probe
	next     tools.Body
	caller   context.Context
	returned chan struct{} // closed when the wrapper has returned

	mu        sync.Mutex
	runs      int
	running   int
	closed    bool
	succeeded bool
	value     json.RawMessage // of the last run
	err       error           // of the last run
}

// run is the body as the wrapper gets it.
func (b *bodies) run(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
	if err := b.begin(); err != nil {
		return nil, err
	}
	b.inherits(ctx)
	b.linger(ctx)
	value, err := b.next(ctx, call)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	b.succeeded = b.succeeded || err == nil
	b.value, b.err = bytes.Clone(value), err
	return value, err
}

func (b *bodies) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs++
	switch {
	case b.closed:
		b.probe.isLate(noLateBody, "it had returned already")
		return errors.New("the wrapper has returned")
	case b.runs > maxAttempts:
		b.probe.find(givesUp, "it ran the body more than %d times", maxAttempts)
		goruntime.Goexit() // it might go on for ever
	case b.running > 0:
		b.probe.find(inTurn, "it ran the body while the body was running")
	case b.succeeded:
		b.probe.find(oneSuccess, "it ran the body again")
	}
	b.running++
	return nil
}

// inherits looks at the context that the wrapper made.
func (b *bodies) inherits(ctx context.Context) {
	if ctx.Value(contextKey{}) != b.caller.Value(contextKey{}) {
		b.probe.find(keepsValues, "a value of the caller's context is not in the body's")
	}
	limit, ok := ctx.Deadline()
	if callers, has := b.caller.Deadline(); has && (!ok || limit.After(callers)) {
		b.probe.find(keepsValues, "the body's context has a later deadline than the caller's, or none")
	}
}

// linger keeps a body running for a while after its context has ended, as one
// does that cleans up.
func (b *bodies) linger(ctx context.Context) {
	if !b.probe.reached(ctx) {
		return
	}
	select {
	case <-b.returned:
	case <-time.After(straggles):
	}
}

// compare looks at what the wrapper returned.
func (b *bodies) compare(value json.RawMessage, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.running > 0:
		b.probe.find(waits, "the body is still running")
	case err != nil:
	case b.runs == 0:
		b.probe.find(runsBody, "it returned a value without having run the body")
	case b.err != nil:
		b.probe.find(keepsFailure, "the body failed with %v, and the wrapper returned a value", b.err)
	case !bytes.Equal(value, b.value):
		b.probe.find(keepsValue, "it returned another one")
	}
}

func (b *bodies) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	close(b.returned)
}
