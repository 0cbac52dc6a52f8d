package runtime

import (
	"encoding/json"
	"time"
)

// Outcome is how a run ended.
type Outcome struct {
	// Value is what the program returned, as lossless JSON; nil when it is
	// undefined or the run failed.
	Value json.RawMessage
	// Logs are the printed lines in order, trimmed in the middle where they
	// exceed Limits.OutputBytes; LogsTrimmed counts the lines left out.
	Logs        []Line
	LogsTrimmed int
	// Failure is nil when the program ended by itself, well.
	Failure *Failure
	// Unanswered are the numbers of the calls that had been handed to
	// Host.Start and had no answer when the program ended by itself, well.
	// NotStarted are those that the program made and that never reached
	// Host.Start, however it ended.
	Unanswered, NotStarted []int
	Usage                  Usage
	Confinement            Confinement
}

// FailureKind says why a run failed.
type FailureKind string

// The failure kinds of engines.
const (
	Syntax             FailureKind = "syntax"              // the source does not parse
	Exception          FailureKind = "exception"           // the program threw
	Timeout            FailureKind = "timeout"             // Failure.Clock says which clock ran out
	Deadlock           FailureKind = "deadlock"            // it waits for what nobody will settle
	Abort              FailureKind = "abort"               // the caller's context ended
	MemoryLimit        FailureKind = "memory-limit"        // Limits.Memory
	OutputLimit        FailureKind = "output-limit"        // Limits.OutputBytes
	CallLimit          FailureKind = "call-limit"          // Limits.Calls
	InvalidOutput      FailureKind = "invalid-output"      // the value is no lossless JSON
	SourceLimit        FailureKind = "source-limit"        // Limits.Source
	DetachedCalls      FailureKind = "detached-calls"      // calls that nobody awaited
	Denied             FailureKind = "denied"              // the host ended it after denials
	EngineExit         FailureKind = "engine-exit"         // the child died
	Protocol           FailureKind = "protocol"            // the child or guest broke the protocol
	SandboxUnavailable FailureKind = "sandbox-unavailable" // nothing could confine the child; nothing ran
)

// Clock names the limit that a timeout ran into.
type Clock string

// The clocks.
const (
	ComputeClock Clock = "compute"
	WallClock    Clock = "wall"
)

// Failure is why a run did not end well. It is an error so that a host can end
// a run with a failure of its own choice: see Engine.
type Failure struct {
	Kind    FailureKind `json:"kind"`
	Message string      `json:"message"`
	// Line and Column in the author's source, from 1; 0: unknown.
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Stack  string `json:"stack,omitempty"`
	// Clock is set when Kind is Timeout.
	Clock Clock `json:"clock,omitempty"`
	// Thrown holds the own fields of the object that ended the run uncaught,
	// for example the Fields of a CallError. A JSON object or nil.
	Thrown json.RawMessage `json:"thrown,omitempty"`
}

func (f *Failure) Error() string { return string(f.Kind) + ": " + f.Message }

// Usage is what a run cost.
type Usage struct {
	Compute time.Duration // the program's own busy time
	Host    time.Duration // time the program only waited for host calls
	Human   time.Duration // time a person was waited for, as Host.Human says
	Wall    time.Duration // from start to end
	Calls   int           // calls made, refused ones too
	// PeakMemory of the program's world in bytes; 0 where the engine cannot
	// tell it apart from the process, or the process died of the program.
	PeakMemory int64
	BytesIn    int64 // values of calls, into the program
	BytesOut   int64 // arguments of calls, out of the program
}

// Isolation says what stands between a program and the process that runs it.
type Isolation string

// The isolations.
const (
	InProcess Isolation = "in-process" // goja alone: containment, not a boundary
	Process   Isolation = "process"    // a confined child process
)

// Enforcement says how completely the confinement of a child is enforced.
type Enforcement string

// The enforcements.
const (
	EnforcementNone    Enforcement = "none"
	EnforcementPartial Enforcement = "partial"
	EnforcementFull    Enforcement = "full"
)

// Confinement is what may be concluded about the run's isolation.
type Confinement struct {
	Isolation   Isolation   `json:"isolation"`
	Backend     string      `json:"backend,omitempty"`
	Enforcement Enforcement `json:"enforcement"`
	// Reasons name what is not enforced, or why.
	Reasons []string `json:"reasons,omitempty"`
}
