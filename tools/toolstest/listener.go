package toolstest

import (
	"context"
	"sync"
	"testing"

	"github.com/dsh-run/dsh/tools"
)

// The claims about listeners, and one about wrappers too.
const (
	nextOnce   claim = "asks the next listener at most once"
	noLateNext claim = "does not ask the next listener after it has answered"
	inWords    claim = "answers with one of the judgements"
	saysWhy    claim = "gives a reason when it denies or asks"
	liveCancel claim = "cancels only when the context has ended"
	endsInside claim = "returns when the context ends while what is inside of it runs"
)

// Listener checks that l behaves as every listener must: that it returns, also
// when the context has ended, panics on no call, may run concurrently, leaves
// its copies alone, asks the next listener at most once and not after its
// answer, and answers with a judgement and a reason.
func Listener(t *testing.T, l tools.Listener) {
	t.Helper()
	listener(l).run(t)
}

func listener(l tools.Listener) subject {
	return subject{
		install: func(r *tools.Registry, p *probe) {
			r.Listen("under test", p.listener(l))
			r.Listen("inside", func(ctx context.Context, _ tools.Call, next func() tools.Verdict) tools.Verdict {
				if p.reached(ctx) {
					return tools.Verdict{Judgement: tools.Cancel}
				}
				return next()
			})
		},
		claims: []claim{nextOnce, noLateNext, inWords, saysWhy, liveCancel},
		inside: []claim{endsInside},
	}
}

func (p *probe) listener(l tools.Listener) tools.Listener {
	return func(ctx context.Context, call tools.Call, next func() tools.Verdict) (v tools.Verdict) {
		n := &nexts{probe: p, next: next}
		defer n.close()
		p.watch(&call, nil, func() {
			v = l(ctx, call, n.ask)
			p.judge(ctx, v)
		})
		return v
	}
}

// judge looks at an answer.
func (p *probe) judge(ctx context.Context, v tools.Verdict) {
	switch {
	case v.Judgement > tools.Cancel:
		p.find(inWords, "it answered %d, which is no judgement and denies", v.Judgement)
	case v.Judgement == tools.Cancel && ctx.Err() == nil:
		p.find(liveCancel, "it cancelled a call whose context lives, which denies it")
	case (v.Judgement == tools.Deny || v.Judgement == tools.AskPerson) && v.Reason == "":
		p.find(saysWhy, "neither the model nor a person would see why")
	}
}

// nexts counts how often one listener asks on.
type nexts struct {
	probe *probe
	next  func() tools.Verdict

	mu     sync.Mutex
	asked  bool
	closed bool
}

func (n *nexts) ask() tools.Verdict {
	n.mu.Lock()
	again, late := n.asked, n.closed
	n.asked = true
	n.mu.Unlock()
	switch {
	case late:
		n.probe.isLate(noLateNext, "it had answered already")
		return tools.Verdict{Judgement: tools.Deny, Reason: "asked too late"}
	case again:
		n.probe.find(nextOnce, "it asked more than once")
	}
	return n.next()
}

func (n *nexts) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
}
