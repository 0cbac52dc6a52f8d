package runtimetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dsh-run/dsh/runtime"
)

// Options of Run.
type Options struct {
	// Contained says that the engine can stop whatever a program does, native
	// code and memory included. Default: false, which leaves out the rows
	// that need it.
	Contained bool
}

// hangs is how long a run may take beyond its limits before the suite calls it
// hung. It says nothing about speed.
const hangs = 20 * time.Second

// row is one program and its one outcome.
type row struct {
	claim  string
	source string
	limits runtime.Limits
	args   string

	value     string // JSON; empty: undefined
	kind      runtime.FailureKind
	clock     runtime.Clock
	message   string // a part of the failure's message
	line      int    // of the failure; 0: not looked at
	logs      string // the printed lines, joined by line ends; empty: not looked at
	calls     string // the names of the calls that reached the host; empty: not looked at
	contained bool
}

// Run checks that the engines that new makes behave as every engine must.
func Run(t *testing.T, new func(t *testing.T) runtime.Engine, o *Options) {
	var options Options
	if o != nil {
		options = *o
	}
	for _, table := range []struct {
		name string
		rows []row
	}{{"behaviour", behaviour}, {"hostile", hostile}} {
		t.Run(table.name, func(t *testing.T) {
			engine := new(t)
			for _, r := range table.rows {
				if r.contained && !options.Contained {
					continue
				}
				t.Run(r.claim, func(t *testing.T) { r.check(t, engine) })
			}
		})
	}
	t.Run("stopping", func(t *testing.T) { stopping(t, new(t)) })
}

func (r row) check(t *testing.T, engine runtime.Engine) {
	h := &host{}
	program := runtime.Program{Source: r.source, Limits: r.limits, Seed: 1, Clock: time.UnixMilli(1_700_000_000_000)}
	if r.args != "" {
		program.Args = json.RawMessage(r.args)
	}
	if program.Limits.Compute == 0 {
		program.Limits.Compute = 10 * time.Second
	}
	outcome := run(t, engine, context.Background(), program, h.host())
	r.checkFailure(t, outcome.Failure)
	if got := string(outcome.Value); got != r.value {
		t.Errorf("value is %s; want %s", got, r.value)
	}
	if got := text(outcome.Logs); r.logs != "" && got != r.logs {
		t.Errorf("printed\n%s\nwant\n%s", got, r.logs)
	}
	if got := strings.Join(h.names(), " "); r.calls != "" && got != r.calls {
		t.Errorf("calls are %q; want %q", got, r.calls)
	}
}

func (r row) checkFailure(t *testing.T, f *runtime.Failure) {
	t.Helper()
	if f == nil {
		f = &runtime.Failure{}
	}
	if f.Kind != r.kind || f.Clock != r.clock {
		t.Errorf("failure is %q (clock %q): %s; want %q (clock %q)", f.Kind, f.Clock, f.Message, r.kind, r.clock)
	}
	if !strings.Contains(f.Message, r.message) {
		t.Errorf("message is %q; want one with %q", f.Message, r.message)
	}
	if r.line != 0 && f.Line != r.line {
		t.Errorf("failure is in line %d, column %d; want line %d", f.Line, f.Column, r.line)
	}
}

// run runs a program and fails the test when the run does not end.
func run(t *testing.T, engine runtime.Engine, ctx context.Context, program runtime.Program, host runtime.Host) runtime.Outcome {
	t.Helper()
	type result struct {
		outcome runtime.Outcome
		err     error
	}
	done := make(chan result, 1)
	go func() {
		o, err := engine.Run(ctx, program, host)
		done <- result{o, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			t.Fatalf("Run: %v", r.err)
		}
		return r.outcome
	case <-time.After(program.Limits.Compute + hangs):
		t.Fatalf("the run goes on %v after its limit", hangs)
		panic("unreachable")
	}
}

func text(lines []runtime.Line) string {
	var texts []string
	for _, l := range lines {
		texts = append(texts, l.Text)
	}
	return strings.Join(texts, "\n")
}

// stopping checks the ways in which a caller ends a run.
func stopping(t *testing.T, engine runtime.Engine) {
	program := runtime.Program{Source: "await tools.never()", Limits: runtime.Limits{Compute: 10 * time.Second}}
	own := &runtime.Failure{Kind: runtime.Denied, Message: "denied three times"}
	for _, c := range []struct {
		claim string
		cause error
		kind  runtime.FailureKind
	}{
		{"the end of the context aborts", nil, runtime.Abort},
		{"a failure as cause is the run's failure", own, runtime.Denied},
	} {
		t.Run(c.claim, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			h := &host{onNever: func() { cancel(c.cause) }}
			outcome := run(t, engine, ctx, program, h.host())
			if outcome.Failure == nil || outcome.Failure.Kind != c.kind {
				t.Errorf("failure is %v; want %s", outcome.Failure, c.kind)
			}
			if !h.released() {
				t.Error("Run returned before its host call had ended")
			}
		})
	}
	t.Run("the wall clock stops a run that waits", func(t *testing.T) {
		h := &host{}
		limited := program
		limited.Limits.Wall = 200 * time.Millisecond
		outcome := run(t, engine, context.Background(), limited, h.host())
		row{kind: runtime.Timeout, clock: runtime.WallClock}.checkFailure(t, outcome.Failure)
		if !h.released() {
			t.Error("Run returned before its host call had ended")
		}
	})
	t.Run("time of a person counts in no limit", func(t *testing.T) {
		h := &host{}
		waits := program
		waits.Source, waits.Limits.Wall = "return await tools.slow()", 100*time.Millisecond
		host := h.host()
		begun := time.Now()
		host.Human = func() time.Duration { return time.Since(begun) }
		outcome := run(t, engine, context.Background(), waits, host)
		if outcome.Failure != nil || string(outcome.Value) != `"slow"` {
			t.Errorf("outcome is %s, %v; want the value of the call", outcome.Value, outcome.Failure)
		}
	})
	t.Run("misuse is an error, and nothing runs", func(t *testing.T) {
		if _, err := engine.Run(context.Background(), program, runtime.Host{}); err == nil {
			t.Error("a host without Start was taken")
		}
		odd := program
		odd.Language = "cobol"
		if _, err := engine.Run(context.Background(), odd, (&host{}).host()); err == nil {
			t.Error("an unknown language was taken")
		}
	})
	t.Run("calls that nobody awaited are reported", func(t *testing.T) {
		h := &host{}
		left := program
		left.Source, left.Limits.Unanswered = "tools.never(); tools.never(); tools.never(); return 1", 2
		outcome := run(t, engine, context.Background(), left, h.host())
		if got := fmt.Sprint(outcome.Unanswered, outcome.NotStarted); got != "[1 2] [3]" || string(outcome.Value) != "1" {
			t.Errorf("unanswered and not started are %s, value %s (%v); want [1 2] [3], 1", got, outcome.Value, outcome.Failure)
		}
	})
}
