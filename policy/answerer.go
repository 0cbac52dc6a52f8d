package policy

import (
	"context"
	"fmt"
)

// Answerer answers questions. Answer returns Unavailable and no error when it
// does not take the question; then the next of the chain is tried. An error, a
// panic or a word outside the vocabulary ends the question as Unavailable.
// Answer returns when ctx ends; what it says after that does not count.
type Answerer struct {
	Name   string
	Answer func(ctx context.Context, q Question) (Outcome, error)

	// reply is Answer for those that also say why.
	reply func(ctx context.Context, q Question) answer
}

// answer is what one answerer said.
type answer struct {
	outcome Outcome
	why     string
	err     error
}

// start asks in the background, since an answerer may ignore the end of ctx.
// The channel gets one answer.
func (a Answerer) start(ctx context.Context, q Question) <-chan answer {
	said := make(chan answer, 1)
	go func() { said <- a.contained(ctx, q) }()
	return said
}

// contained makes a panic an error.
func (a Answerer) contained(ctx context.Context, q Question) (got answer) {
	defer func() {
		if r := recover(); r != nil {
			got = answer{err: fmt.Errorf("the answerer panicked: %v", r)}
		}
	}()
	if a.reply != nil {
		return a.reply(ctx, q)
	}
	got.outcome, got.err = a.Answer(ctx, q)
	return got
}

// decision is what an answer that came in time means; false: the answerer did
// not take the question.
func (a Answerer) decision(got answer) (Decision, bool) {
	_, unknown := got.outcome.MarshalText()
	switch {
	case got.err != nil:
		return Decision{Unavailable, a.Name, got.err.Error()}, true
	case unknown != nil:
		return Decision{Unavailable, a.Name, fmt.Sprintf("the answer %v is not in the vocabulary", got.outcome)}, true
	}
	return Decision{got.outcome, a.Name, got.why}, got.outcome != Unavailable
}
