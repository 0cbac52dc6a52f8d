package runtime

import (
	"context"
	"encoding/json"
	"strings"
	"time"
)

// An Engine runs one program against named host functions. Nothing survives
// a run: every run gets a fresh world.
//
// What the program does wrong is [Outcome.Failure]. The error is for misuse by
// the caller only (an unknown language, a Host that lacks Start); then no part
// of the program has run. Run returns after everything it started has ended:
// host calls in flight are cancelled through their context and awaited.
//
// When ctx ends the run is stopped. If [context.Cause] is a *Failure, that is
// the run's failure; otherwise its kind is Abort.
type Engine interface {
	Run(ctx context.Context, program Program, host Host) (Outcome, error)
}

// Language names what a program is written in.
type Language string

// TypeScript also takes plain JavaScript, which is tried first.
const (
	TypeScript Language = "ts"
	WASM       Language = "wasm"
)

// Program is one program and the conditions of one run of it.
type Program struct {
	// Source is the program's text: the body of an async function. Also
	// accepted: a Markdown fence around it, `export default` of a function,
	// a bare function expression, and the value of a last expression
	// statement when nothing is returned.
	Source string
	// Language of Source. Default: TypeScript.
	Language Language
	// Name is the file name shown in errors and stacks.
	// Default: "program.ts".
	Name string
	// Args is the JSON value of the global `args`. Default: [].
	Args json.RawMessage
	// Limits of this run. A zero field means its default.
	Limits Limits
	// Seed of Math.random and crypto. The caller records it, so that a run
	// can be repeated. Default: 0, which is a seed like any other.
	Seed uint64
	// Clock is what Date shows at the start. Default: the time of the call.
	Clock time.Time
}

// Call is one call of a host function by the program.
type Call struct {
	// N counts the run's calls in submission order, from 1.
	N int
	// Name is the Name of the called Function, or the property names joined by
	// dots where the program used a name that the host did not list.
	Name string
	// Args is the first argument as lossless JSON, copied when the call was
	// made; `{}` where the program passed nothing.
	Args json.RawMessage
	// Line and Column of the call in the author's source, from 1; 0: unknown.
	Line, Column int
}

// Reply answers one call. Exactly one of the fields is used: Error if it is
// not nil, else Value. A nil Value is undefined.
type Reply struct {
	Value json.RawMessage
	Error *CallError
}

// CallError rejects the program's promise with an instance of a class.
type CallError struct {
	// Class is one of Host.ErrorClasses. Default: "Error".
	Class   string
	Message string
	// Fields become own properties of the error. A JSON object or nil.
	Fields json.RawMessage
}

// Function is one host function as the program reaches it.
type Function struct {
	// Path is the chain of property names under Host.Object: ["read"] for
	// tools.read, ["github", "create_issue"] for tools.github.create_issue.
	// Any string is a legal property name.
	Path []string
	// Name is what Call.Name says. Default: Path joined by dots.
	Name string
}

// name is what Call.Name says of f.
func (f Function) name() string {
	if f.Name != "" {
		return f.Name
	}
	return strings.Join(f.Path, ".")
}

// Line is one printed line of the program.
type Line struct {
	Level string `json:"level"` // log, info, warn, error, debug
	Text  string `json:"text"`
}

// Host is what a run may reach of the world outside: nothing but these
// functions.
type Host struct {
	// Object is the global that holds the functions. Default: "tools".
	Object string
	// Functions the program may call. A property that is not listed is still
	// a function for the program: Start gets its name and should reject it.
	Functions []Function
	// ErrorClasses are made global classes extending Error.
	ErrorClasses []string
	// Start begins a call. It is called in submission order, one at a time,
	// must not block, and arranges that reply is called once, from any
	// goroutine; later replies are dropped. ctx ends when the run ends or is
	// stopped; reply is awaited even then. Needed.
	Start func(ctx context.Context, call Call, reply func(Reply))
	// Log receives the printed lines in order, as they are printed. It must
	// not block for long. Default: none; the Outcome has them all the same.
	Log func(Line)
	// Human is the time during which a person was being waited for so far,
	// in this run. It counts in no limit. Default: always 0.
	Human func() time.Duration
}

// Limits of one run. They are hard unless their comment says otherwise.
type Limits struct {
	// Source is the longest source, in bytes, checked before anything parses
	// it. Default: 256 KiB.
	Source int
	// Compute is the program's own busy time. Default: 60 s.
	Compute time.Duration
	// Wall is the time of the whole run, host calls included, people
	// excluded. Default and cap: 10 min.
	Wall time.Duration
	// Memory of the program's world, in bytes. The in-process engine cannot
	// enforce it. Default: 512 MiB.
	Memory int64
	// Calls of host functions in one run. Default: 10,000.
	Calls int
	// Unanswered is how many calls are handed to Start and not yet answered;
	// further ones wait inside the program. Default: 128.
	Unanswered int
	// CallBytes bounds the arguments, and the value, of one call. Over it that
	// call rejects with the code VALUE_TOO_LARGE. Default: 16 MiB.
	CallBytes int
	// OutputBytes bounds the value and the printed lines together. Lines are
	// trimmed to head and tail; only a value over it fails. Default: 64 MiB.
	OutputBytes int
	// Timers running at one time. Default: 128.
	Timers int
}

const (
	defaultSource      = 256 << 10
	defaultCompute     = 60 * time.Second
	maxWall            = 10 * time.Minute
	defaultMemory      = 512 << 20
	defaultCalls       = 10_000
	defaultUnanswered  = 128
	defaultCallBytes   = 16 << 20
	defaultOutputBytes = 64 << 20
	defaultTimers      = 128
)

// WithDefaults returns l with every zero or negative field at its default and
// Wall at its cap at most.
func (l Limits) WithDefaults() Limits {
	orDefault(&l.Source, defaultSource)
	orDefault(&l.Compute, defaultCompute)
	orDefault(&l.Wall, maxWall)
	orDefault(&l.Memory, defaultMemory)
	orDefault(&l.Calls, defaultCalls)
	orDefault(&l.Unanswered, defaultUnanswered)
	orDefault(&l.CallBytes, defaultCallBytes)
	orDefault(&l.OutputBytes, defaultOutputBytes)
	orDefault(&l.Timers, defaultTimers)
	l.Wall = min(l.Wall, maxWall)
	return l
}

func orDefault[T int | int64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
