package tools

import (
	"context"
	"encoding/json"
	"time"

	"github.com/dsh-run/dsh/policy"
)

// Effect says what a tool may change. The zero value assumes the most.
type Effect uint8

// The effects.
const (
	External Effect = iota // the world outside of this machine's files
	Local                  // files and processes of this machine
	NoEffect               // nothing
)

func (e Effect) String() string { return [...]string{"external", "local", "none"}[e] }

// MarshalText gives the wire word of the effect.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Tool is what can be called. It is copied when it is added.
type Tool struct {
	// Name matches ^[A-Za-z0-9_.-]{1,64}$. Needed.
	Name string
	// Description for a model. Needed.
	Description string
	// Input is the JSON Schema (2020-12) of the arguments, an object. Needed.
	Input json.RawMessage
	// Output is the JSON Schema of the value. Default: any value.
	Output json.RawMessage
	// Handle is the body. It returns when ctx ends. An *Error keeps its code,
	// any other error becomes TOOL_FAILED. Needed.
	Handle Handler
	// Render makes what a model sees from arguments and value, without side
	// effects. Default: the value's JSON as text.
	Render func(args, value json.RawMessage) []Content
	// MaxValue is the largest value, in bytes. Default: 16 MiB.
	MaxValue int
	// Timeout of one attempt of the body. Default: none; the caller's context
	// rules.
	Timeout time.Duration
	// Overlaps says whether a call with these arguments may run beside its
	// siblings. Anything but true, a panic included, means alone.
	// Default: alone.
	Overlaps func(args json.RawMessage) bool
	// Effect of a call. Default: External.
	Effect Effect
	// Idempotent tools may be tried again after a failure that says it is
	// retryable. Default: no.
	Idempotent bool
	// Atomic says that a call which failed has changed nothing. Default: no.
	Atomic bool
	// Confined says that the file effects are governed by the sandbox mode.
	// Default: no; then the tool runs with its own rights, and says so.
	Confined bool
	// Widen reads from the arguments the wider mode the call asks for; nil, nil
	// when it asks for none. Only a Confined tool has one. Default: none.
	Widen func(args json.RawMessage) (*policy.Widening, error)
	// Preview shows a person who is asked about a call what it would change,
	// such as a diff. It changes nothing. Default: none.
	Preview func(ctx context.Context, call *Call) (string, error)

	// decode says why the arguments do not fit a typed body.
	decode func(args json.RawMessage) error
}

// Handler is the body of a tool: it returns the value as JSON.
type Handler func(ctx context.Context, call *Call) (json.RawMessage, error)
