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
// without calling next overrides them. After its answer next only denies.
type Listener func(ctx context.Context, call Call, next func() Verdict) Verdict

// Guard vetoes a call by returning an error, whose text is the reason. It runs
// before a person is asked and again before each attempt of the body. A call
// that asks for a wider mode is shown in that mode, both times.
type Guard func(ctx context.Context, call Call) error

// Body runs a call's body, or a wrapper around it.
type Body func(ctx context.Context, call *Call) (json.RawMessage, error)

// Wrapper wraps the body: to narrow its context, try it again, measure it. It
// calls next at least once and returns what next returned last, or an error.
//
// What it cannot do: the body's context ends with the caller's, whatever
// context next is given; the call given to next is not looked at; a value of
// its own, a success made of a failure, an answer without having called next,
// and a panic are TOOL_FAILED; a guard's veto stays. Calls of next run one
// after another, and none begins once the wrapper has returned. When it returns
// while next runs, the body's context ends and the pipeline waits for it.
type Wrapper func(next Body) Body

// Post looks at a copy of a result and may amend it. It runs for refused calls
// too. An error or a panic makes a success a failure, and is only reported to
// the registry's Logger where the call has failed already.
type Post func(ctx context.Context, call Call, result Result) (Amendment, error)

// Amendment is what a post-execute step changes. The zero value accepts.
type Amendment struct {
	// Content replaces what the model sees; nil leaves it. That of a call which
	// was refused before its body cannot be replaced.
	Content []Content
	// Value replaces the value of a successful call, and is rendered anew; nil
	// leaves it. It excludes Content.
	Value json.RawMessage
	// Context is attached behind the content.
	Context []Content
	// Block turns a success into an error with this feedback. To a call that has
	// failed already it is attached as context.
	Block string
}

// Observer sees a copy of the final result. A panic in it is reported to the
// registry's Logger.
type Observer func(ctx context.Context, call Call, result Result)

// named is a stage function with the name it was registered under.
type named[F any] struct {
	name string
	f    F
}
