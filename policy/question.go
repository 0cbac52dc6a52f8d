package policy

import "encoding/json"

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

// Question is what a person or a rule is asked about one call. Its texts are
// raw: who shows them on a screen escapes them.
type Question struct {
	// Session and ID are set by [Approvals.Ask]. An ID is unique in its session.
	Session, ID string
	CallID      string
	Tool        string
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

// ByPolicy is who answers under never.
const ByPolicy = "policy"

// Decision is the end of one question.
type Decision struct {
	Outcome Outcome
	// By names who answered: an answerer, ByPolicy under never, or nobody.
	By string
	// Why says more where the outcome does not grant.
	Why string
}
