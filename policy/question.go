package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dsh-run/dsh/session"
)

// Caller says who made a call.
type Caller struct {
	Kind CallerKind `json:"kind"`
	// Line and Column of the call in the program, from 1; 0: unknown or no
	// program.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Program is the name of the program's file and Source the line of it that
	// makes the call, for a person to see. Empty: unknown or no program.
	Program string `json:"-"`
	Source  string `json:"-"`
}

// CallerKind names the kinds of caller.
type CallerKind string

// The kinds of caller.
const (
	Direct  CallerKind = "direct"  // a model's own call, the command line, Go
	Program CallerKind = "program" // a program run by run_code
	Client  CallerKind = "client"  // another process, for example over MCP
)

// Question is what a person or a rule is asked about one call.
type Question struct {
	ID     string
	CallID string
	Tool   string
	// Args are the exact arguments of the call.
	Args   json.RawMessage
	Caller Caller
	// Reason why the call is asked about: a listener's, or the justification
	// of a widening.
	Reason string
	// Mode that the call runs in, and To, the mode it asks for. They differ
	// only for a widening.
	Mode, To Mode
	// Confined says whether the tool's file effects are governed by Mode.
	Confined bool
	// Preview shows what the call would change, such as a diff; empty: the tool
	// has none. A preview that could not be made says why.
	Preview string
	// Denied is the id of an earlier call that the sandbox denied with the same
	// arguments; empty: none was found.
	Denied string
}

// Widens reports whether the question is about a wider mode.
func (q Question) Widens() bool { return q.To > q.Mode }

// Answerer answers questions. Answer returns Unavailable and no error when it
// does not take the question; then the next of the chain is tried. It returns
// when ctx ends.
type Answerer struct {
	Name   string
	Answer func(ctx context.Context, q Question) (Outcome, error)
}

// Decision is the end of one question.
type Decision struct {
	Outcome Outcome
	// By names who answered: an answerer, "policy" under never, or nobody.
	By string
	// Why says more where the outcome does not grant.
	Why string
}

// Approvals puts questions to a chain of answerers, one after another.
type Approvals struct {
	answerers []Answerer
	deadline  time.Duration
	turn      chan struct{}
}

const defaultDeadline = 10 * time.Minute

// NewApprovals returns a service that asks the answerers in order. A question
// that waits for an answer longer than deadline is cancelled; 0 means 10
// minutes.
func NewApprovals(deadline time.Duration, answerers ...Answerer) *Approvals {
	if deadline <= 0 {
		deadline = defaultDeadline
	}
	return &Approvals{
		answerers: append([]Answerer(nil), answerers...),
		deadline:  deadline,
		turn:      make(chan struct{}, 1),
	}
}

type asked struct {
	ID       string `json:"id"`
	CallID   string `json:"call_id"`
	Tool     string `json:"tool"`
	Reason   string `json:"reason"`
	Mode     Mode   `json:"mode"`
	To       Mode   `json:"to"`
	Denied   string `json:"denied_call,omitempty"`
	Approval string `json:"approval"`
}

type decided struct {
	ID         string  `json:"id"`
	CallID     string  `json:"call_id"`
	Outcome    Outcome `json:"outcome"`
	By         string  `json:"by"`
	Why        string  `json:"why,omitempty"`
	DurationMS int64   `json:"duration_ms"`
}

// Ask puts q to the answerers. The question and the answer are in the log, the
// question durably, before anything can be granted; if either cannot be
// written the error says so and nothing is granted. Under Never no answerer is
// called.
func (a *Approvals) Ask(ctx context.Context, s *Session, q Question) (Decision, error) {
	q.ID = s.newQuestionID()
	policy := s.State().Approval
	_, err := s.log.Append(session.ApprovalAsked, asked{q.ID, q.CallID, q.Tool, q.Reason, q.Mode, q.To, q.Denied, policy.String()})
	if err == nil {
		err = s.log.Sync()
	}
	if err != nil {
		return Decision{}, fmt.Errorf("the question could not be logged, so it was not asked: %w", err)
	}
	start := time.Now()
	d := a.decide(ctx, policy, q)
	_, err = s.log.Append(session.ApprovalDecided, decided{q.ID, q.CallID, d.Outcome, d.By, d.Why, time.Since(start).Milliseconds()})
	if err != nil {
		return Decision{}, fmt.Errorf("the answer could not be logged, so it does not count: %w", err)
	}
	return d, nil
}

func (a *Approvals) decide(ctx context.Context, policy Approval, q Question) Decision {
	if policy != Ask {
		return Decision{Rejected, "policy", "approvals are off in this session, no person was asked"}
	}
	defer clockOf(ctx).pause()()
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return Decision{Cancelled, "", "the call was cancelled before the question was put"}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, a.deadline, errDeadline)
	defer cancel()
	return a.ask(ctx, q)
}

var errDeadline = errors.New("nobody answered in time")

func (a *Approvals) ask(ctx context.Context, q Question) Decision {
	for _, answerer := range a.answerers {
		outcome, err := answerer.call(ctx, q)
		switch {
		case ctx.Err() != nil:
			return Decision{Cancelled, answerer.Name, context.Cause(ctx).Error()}
		case err != nil:
			return Decision{Unavailable, answerer.Name, err.Error()}
		case int(outcome) >= len(outcomeWords):
			return Decision{Unavailable, answerer.Name, fmt.Sprintf("the answer %v is not in the vocabulary", outcome)}
		case outcome != Unavailable:
			return Decision{outcome, answerer.Name, ""}
		}
	}
	return Decision{Unavailable, "", "no answerer took the question"}
}

// call contains a panic, and does not wait for an answerer that ignores ctx.
func (a Answerer) call(ctx context.Context, q Question) (Outcome, error) {
	type answer struct {
		outcome Outcome
		err     error
	}
	done := make(chan answer, 1)
	go func() {
		var got answer
		defer func() {
			if r := recover(); r != nil {
				got = answer{err: fmt.Errorf("the answerer panicked: %v", r)}
			}
			done <- got
		}()
		got.outcome, got.err = a.Answer(ctx, q)
	}()
	select {
	case got := <-done:
		return got.outcome, got.err
	case <-ctx.Done():
		return Unavailable, ctx.Err()
	}
}
