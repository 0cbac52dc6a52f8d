package runtime

import "context"

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
