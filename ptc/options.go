package ptc

import (
	"context"
	"encoding/json"

	"github.com/dsh-run/dsh/runtime"
)

// Options of run_code. Engine is needed.
type Options struct {
	// Engine runs the programs.
	Engine runtime.Engine
	// Limits of every run; a run may ask for less, never for more.
	// Default: the runtime's defaults.
	Limits runtime.Limits
	// InFlight is how many bodies of overlapping calls run at one time in one
	// program. Default: 10.
	InFlight int
}

const defaultInFlight = 10

// Run holds what only the embedder of one run may choose; it travels with the
// context (see WithRun), since none of it is the model's to say.
type Run struct {
	// Name of the program's file in errors. Default: "program.ts".
	Name string
	// Args is the JSON value of the program's `args`. Default: [].
	Args json.RawMessage
	// Limits tighten those of the Options. Default: no change.
	Limits runtime.Limits
	// OnLine sees each printed line as it is printed. Default: none.
	OnLine func(runtime.Line)
	// OnCall sees each sub-call when it was made and when it ended; ended is
	// nil for the first. Default: none.
	OnCall func(id, tool string, ended *SubCall)
}

type runKey struct{}

// WithRun gives the options of the next run_code call made with the context.
func WithRun(ctx context.Context, r Run) context.Context {
	return context.WithValue(ctx, runKey{}, r)
}

func runOf(ctx context.Context) Run {
	r, _ := ctx.Value(runKey{}).(Run)
	return r
}

// tighten returns the smaller of each limit, defaults filled in.
func tighten(a, b runtime.Limits) runtime.Limits {
	a = a.WithDefaults()
	smaller(&a.Source, b.Source)
	smaller(&a.Compute, b.Compute)
	smaller(&a.Wall, b.Wall)
	smaller(&a.Memory, b.Memory)
	smaller(&a.Calls, b.Calls)
	smaller(&a.Unanswered, b.Unanswered)
	smaller(&a.CallBytes, b.CallBytes)
	smaller(&a.OutputBytes, b.OutputBytes)
	smaller(&a.Timers, b.Timers)
	return a
}

func smaller[T ~int | ~int64](limit *T, wish T) {
	if wish > 0 && wish < *limit {
		*limit = wish
	}
}
