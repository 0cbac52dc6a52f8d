package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// hooks are what the worker process adds to the engine that it runs inside
// itself. The zero value adds nothing.
type hooks struct {
	// started is called when parsing, transforming and compiling are over and
	// the program's first statement comes next.
	started func()
	// overrun is called when a stop was asked for and the VM did not yield
	// within overrunGrace. The worker exits there; in process it is nil and
	// the run waits.
	overrun func(kind FailureKind, clock Clock)
	// softMemory, when it is positive, ends the run with MemoryLimit once the
	// heap of this process holds more bytes.
	softMemory int64
}

type inProcess struct{ hooks hooks }

// NewInProcess returns the engine that runs TypeScript and JavaScript inside
// the calling process. It is for programs that are trusted.
//
// It contains mistakes, not attacks. A program reaches nothing but the host's
// functions, and loops, promises that nobody settles and calls without end are
// stopped. What it cannot do: bound memory (one allocation that is too large,
// or recursion in native code, ends the whole process), and interrupt a single
// operation of the JavaScript engine that runs in native code, such as a
// backtracking regular expression, an array method over a huge length or a
// power of a BigInt. Run then returns only when that operation has ended.
func NewInProcess() Engine { return newInProcess(hooks{}) }

func newInProcess(h hooks) *inProcess { return &inProcess{hooks: h} }

// warm runs one small program of each kind, so that the first real run pays
// for no one-time work of the engine or the transformer.
func (e *inProcess) warm() {
	quiet := newInProcess(hooks{})
	for _, source := range []string{
		`interface A { n: number } enum E { X } class P { constructor(private n: number) {} }
		for await (const x of [1]) console.log({ x, y: [1, "a"] }); return { a: (args as A[]).length }`,
		`await new Promise(r => setTimeout(r)); return JSON.stringify([new Date(0), Math.random()])`,
	} {
		_, _ = quiet.Run(context.Background(), Program{Source: source}, Host{Start: refuse})
	}
}

func refuse(_ context.Context, _ Call, reply func(Reply)) {
	reply(Reply{Error: &CallError{Message: "no host functions"}})
}

func (e *inProcess) Run(ctx context.Context, program Program, host Host) (Outcome, error) {
	program, host, err := prepare(program, host)
	if err != nil {
		return Outcome{}, err
	}
	return newWorld(ctx, e.hooks, program, host).run(ctx), nil
}

// prepare fills in the defaults of a run and refuses misuse by the caller.
func prepare(program Program, host Host) (Program, Host, error) {
	if program.Language == "" {
		program.Language = TypeScript
	}
	if program.Name == "" {
		program.Name = "program.ts"
	}
	if program.Args == nil {
		program.Args = json.RawMessage("[]")
	}
	if program.Clock.IsZero() {
		program.Clock = time.Now()
	}
	program.Limits = program.Limits.WithDefaults()
	if host.Object == "" {
		host.Object = "tools"
	}
	if host.Human == nil {
		host.Human = func() time.Duration { return 0 }
	}
	return program, host, misuse(program, host)
}

// identifier is what a global name must look like to be of use to a program.
var identifier = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\p{L}_$][\p{L}\p{N}_$]*$`) })

func misuse(program Program, host Host) error {
	switch {
	case program.Language != TypeScript:
		return fmt.Errorf("runtime: this engine runs the language %q, not %q", TypeScript, program.Language)
	case host.Start == nil:
		return fmt.Errorf("runtime: Host.Start is needed")
	case !json.Valid(program.Args):
		return fmt.Errorf("runtime: Program.Args is no valid JSON")
	case host.Object != "tools" && !identifier().MatchString(host.Object):
		return fmt.Errorf("runtime: Host.Object %q is no identifier", host.Object)
	}
	for _, class := range host.ErrorClasses {
		if !identifier().MatchString(class) {
			return fmt.Errorf("runtime: error class %q is no identifier", class)
		}
	}
	return checkFunctions(host.Functions)
}

// checkFunctions refuses two functions with one path, which would make calls
// go to the wrong one.
func checkFunctions(functions []Function) error {
	seen := make(map[string]bool, len(functions))
	for _, f := range functions {
		if len(f.Path) == 0 {
			return fmt.Errorf("runtime: a function without a path (name %q)", f.Name)
		}
		key := strings.Join(f.Path, "\x00")
		if seen[key] {
			return fmt.Errorf("runtime: two functions have the path %q", f.Path)
		}
		seen[key] = true
	}
	return nil
}
