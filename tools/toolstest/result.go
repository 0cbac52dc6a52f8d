package toolstest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/dsh-run/dsh/tools"
)

// The claims about post-execute steps.
const (
	oneChange   claim = "replaces content or value, not both"
	noRescue    claim = "gives no value to a failed call"
	isJSON      claim = "replaces a value by JSON"
	noErrorOnOK claim = "fails on no call that the road let through"
)

// Guard checks that g behaves as every guard must: that it returns, also when
// the context has ended, panics on no call, may run concurrently, and leaves
// its copy of the call alone.
func Guard(t *testing.T, g tools.Guard) {
	t.Helper()
	guard(g).run(t)
}

func guard(g tools.Guard) subject {
	return subject{install: func(r *tools.Registry, p *probe) {
		r.Guard("under test", func(ctx context.Context, call tools.Call) (err error) {
			p.watch(&call, nil, func() { err = g(ctx, call) })
			return err
		})
	}}
}

// Post checks that f behaves as every post-execute step must: that it returns,
// also when the context has ended, panics on no result, may run concurrently,
// leaves its copies alone, and amends only what can be amended.
func Post(t *testing.T, f tools.Post) {
	t.Helper()
	post(f).run(t)
}

func post(f tools.Post) subject {
	return subject{
		install: func(r *tools.Registry, p *probe) {
			r.After("under test", func(ctx context.Context, call tools.Call, result tools.Result) (a tools.Amendment, err error) {
				p.watch(&call, &result, func() {
					a, err = f(ctx, call, result)
					p.amended(ctx, result, a, err)
				})
				return a, err
			})
		},
		claims: []claim{oneChange, noRescue, isJSON, noErrorOnOK},
	}
}

// amended looks at what a step makes of a result.
func (p *probe) amended(ctx context.Context, r tools.Result, a tools.Amendment, err error) {
	switch {
	case err != nil && r.Error == nil && ctx.Err() == nil:
		p.find(noErrorOnOK, "it failed with %v, which fails the call; Block is how a step refuses a result", err)
	case a.Value == nil:
	case a.Content != nil:
		p.find(oneChange, "it replaced both")
	case r.Error != nil:
		p.find(noRescue, "the call failed with %s", r.Error.Code)
	case !json.Valid(a.Value):
		p.find(isJSON, "it gave %.100q", a.Value)
	}
}

// Observer checks that o behaves as every observer must: that it returns, also
// when the context has ended, panics on no result, may run concurrently, and
// leaves its copies alone. An observer that has something slow to do hands it
// to a goroutine of its own: the call waits for it.
func Observer(t *testing.T, o tools.Observer) {
	t.Helper()
	observer(o).run(t)
}

func observer(o tools.Observer) subject {
	return subject{install: func(r *tools.Registry, p *probe) {
		r.Observe("under test", func(ctx context.Context, call tools.Call, result tools.Result) {
			p.watch(&call, &result, func() { o(ctx, call, result) })
		})
	}}
}
