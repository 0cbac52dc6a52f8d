package tools

import (
	"context"
	"encoding/json"
)

// Judgement is what a listener decides. The zero value asks.
type Judgement uint8

// The judgements.
const (
	AskPerson Judgement = iota
	Allow
	Deny
	Cancel // the call's context ended
)

// Verdict is a listener's answer.
type Verdict struct {
	Judgement Judgement
	// Reason is shown to the model, or to the person who is asked.
	Reason string
	// Code of a denial. Default: DENIED_BY_LISTENER.
	Code Code
	// Details of a denial, a JSON value. Default: none.
	Details json.RawMessage
	// rule is the listener that decided.
	rule string
}

// Listener judges a call before it runs. It sees a copy of the call; next asks
// the listeners inside of it, and allows when there are none. Answering
// without calling next overrides them.
type Listener func(ctx context.Context, call Call, next func() Verdict) Verdict

// Guard vetoes a call by returning an error, whose text is the reason. It runs
// before a person is asked and again before each attempt of the body.
type Guard func(ctx context.Context, call Call) error

// Body runs a call's body, or a wrapper around it.
type Body func(ctx context.Context, call *Call) (json.RawMessage, error)

// Wrapper wraps the body: to narrow its context, try it again, measure it. It
// must not detach the caller's cancellation.
type Wrapper func(next Body) Body

// Post looks at a result and may amend it. It runs for refused calls too.
type Post func(ctx context.Context, call Call, result Result) (Amendment, error)

// Amendment is what a post-execute step changes. The zero value accepts.
type Amendment struct {
	// Content replaces what the model sees; nil leaves it.
	Content []Content
	// Value replaces the value of a successful call, and is rendered anew; nil
	// leaves it. It excludes Content.
	Value json.RawMessage
	// Context is attached behind the content.
	Context []Content
	// Block turns a success into an error with this feedback.
	Block string
}

// Observer sees the final result.
type Observer func(ctx context.Context, call Call, result Result)

// named is a stage function with the name it was registered under.
type named[F any] struct {
	name string
	f    F
}
