package policy

import (
	"context"
	"fmt"
	"time"
)

// Approvals puts questions to a chain of answerers, one after another in the
// order they were asked.
type Approvals struct {
	answerers []Answerer
	deadline  time.Duration
	queue     queue
}

const defaultDeadline = 10 * time.Minute

// NewApprovals returns a service that asks the answerers in order. A question
// that was put and has no answer after deadline is cancelled; 0 means 10
// minutes. Waiting for the questions before it does not count.
func NewApprovals(deadline time.Duration, answerers ...Answerer) *Approvals {
	if deadline <= 0 {
		deadline = defaultDeadline
	}
	return &Approvals{answerers: append([]Answerer(nil), answerers...), deadline: deadline}
}

// Ask puts q to the answerers. The question and the answer are in the log, the
// question durably, before anything can be granted; if either cannot be
// written the error says so and nothing is granted. Under Never no answerer is
// called. When ctx ends the question is withdrawn; an answer that comes after
// the end of a question is logged as approval/late and does not count.
func (a *Approvals) Ask(ctx context.Context, s *Session, q Question) (Decision, error) {
	place := a.queue.join(func() { q.Session, q.ID = s.log.ID(), s.newQuestionID() })
	defer a.queue.leave(place)
	if err := s.logAsked(q, s.State().Approval); err != nil {
		return Decision{}, fmt.Errorf("the question could not be logged, so it was not asked: %w", err)
	}
	p := &put{session: s, question: q, ended: make(chan struct{})}
	defer close(p.ended)
	d := a.decide(ctx, p, place)
	if err := s.logDecided(p.id(), d, p.age()); err != nil {
		return Decision{}, fmt.Errorf("the answer could not be logged, so it does not count: %w", err)
	}
	return d, nil
}

// put is one question on its way to an answer.
type put struct {
	session  *Session
	question Question
	at       time.Time     // when it was put; zero: not yet
	ended    chan struct{} // closed when the end was logged
}

func (p *put) id() questionID { return questionID{p.question.ID, p.question.CallID} }

func (p *put) age() time.Duration {
	if p.at.IsZero() {
		return 0
	}
	return time.Since(p.at)
}

// decide waits for the question's turn and puts it. The policy is asked at the
// turn as well: who was switched off while waiting is not bothered.
func (a *Approvals) decide(ctx context.Context, p *put, place chan struct{}) Decision {
	if p.session.State().Approval != Ask {
		return approvalsAreOff()
	}
	defer clockOf(ctx).pause()()
	if a.queue.wait(ctx, place) != nil {
		return Decision{Cancelled, "", "the call was cancelled before the question was put"}
	}
	if p.session.State().Approval != Ask {
		return approvalsAreOff()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, a.deadline, fmt.Errorf("nobody answered within %v", a.deadline))
	defer cancel()
	p.at = time.Now()
	return a.ask(ctx, p)
}

func approvalsAreOff() Decision {
	return Decision{Rejected, ByPolicy, "approvals are off in this session, no person was asked"}
}

// ask tries the chain until somebody takes the question or ctx ends.
func (a *Approvals) ask(ctx context.Context, p *put) Decision {
	for _, answerer := range a.answerers {
		said := answerer.start(ctx, p.question)
		got, inTime := await(ctx, said)
		if !inTime {
			go p.late(answerer.Name, got, said)
			return Decision{Cancelled, "", context.Cause(ctx).Error()}
		}
		if d, taken := answerer.decision(*got); taken {
			return d
		}
	}
	return Decision{Unavailable, "", "no answerer took the question"}
}

// await returns what was said, and whether that was before ctx ended; nil:
// nothing yet.
func await(ctx context.Context, said <-chan answer) (got *answer, inTime bool) {
	select {
	case g := <-said:
		return &g, ctx.Err() == nil
	case <-ctx.Done():
		return nil, false
	}
}

// late logs an answer that came after the question had ended.
func (p *put) late(by string, got *answer, said <-chan answer) {
	if got == nil {
		g := <-said
		got = &g
	}
	after := p.age()
	<-p.ended
	if got.err == nil {
		p.session.logLate(p.id(), got.outcome, by, after)
	}
}
