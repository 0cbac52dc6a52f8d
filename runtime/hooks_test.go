package runtime

import (
	"context"
	"testing"
	"time"
)

func TestHooks(t *testing.T) {
	run := func(h hooks, source string, limits Limits) Outcome {
		o, err := newInProcess(h).Run(context.Background(), Program{Source: source, Limits: limits}, Host{Start: refuse})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	t.Run("started comes before the first statement, and only for programs that compile", func(t *testing.T) {
		started := 0
		if o := run(hooks{started: func() { started++ }}, "return 1", Limits{}); o.Failure != nil || started != 1 {
			t.Errorf("started %d times, failure %v; want once, none", started, o.Failure)
		}
		if run(hooks{started: func() { started++ }}, "let = =", Limits{}); started != 1 {
			t.Errorf("a program that does not compile was started")
		}
	})
	t.Run("overrun says which clock a VM that does not yield ran over", func(t *testing.T) {
		told := make(chan Clock, 1)
		h := hooks{overrun: func(kind FailureKind, clock Clock) {
			if kind == Timeout {
				told <- clock
			}
		}}
		o := run(h, "'a'.repeat(22) .match(/(?=a)(a+)+$|(a|a)*b/)\nArray.prototype.indexOf.call({ length: 3e7 }, 1)", Limits{Compute: 20 * time.Millisecond})
		if o.Failure == nil || o.Failure.Kind != Timeout {
			t.Fatalf("failure is %v; want a timeout", o.Failure)
		}
		select {
		case clock := <-told:
			if clock != ComputeClock {
				t.Errorf("clock is %q; want %q", clock, ComputeClock)
			}
		default:
			t.Error("overrun was not called")
		}
	})
	t.Run("overrun is not called for a VM that yields", func(t *testing.T) {
		called := false
		run(hooks{overrun: func(FailureKind, Clock) { called = true }}, "for (;;) {}", Limits{Compute: 20 * time.Millisecond})
		if called {
			t.Error("overrun was called")
		}
	})
	t.Run("the memory fuse ends the run", func(t *testing.T) {
		o := run(hooks{softMemory: 64 << 20}, "const a = []; for (;;) a.push('x'.repeat(1000) + a.length)", Limits{Compute: 20 * time.Second})
		if o.Failure == nil || o.Failure.Kind != MemoryLimit {
			t.Errorf("failure is %v; want %s", o.Failure, MemoryLimit)
		}
	})
}

func TestLogs(t *testing.T) {
	for _, c := range []struct {
		claim   string
		lines   int
		room    int // of the value's limit when the run ends
		kept    int
		trimmed int
		first   string
		last    string
	}{
		{"what fits is kept", 3, 1000, 3, 0, "line 0000", "line 0002"},
		{"head and tail are kept of a flood", 1000, 1000, 40, 960, "line 0000", "line 0999"},
		{"a large value leaves less room", 1000, 500, 20, 980, "line 0000", "line 0019"},
		{"no room keeps nothing", 10, 0, 0, 10, "", ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			l := logs{limit: 1000}
			for i := range c.lines {
				l.add(Line{Text: "line " + string([]byte{byte('0' + i/1000), byte('0' + i/100%10), byte('0' + i/10%10), byte('0' + i%10)})})
			}
			lines, trimmed := l.take(c.room)
			if len(lines) != c.kept || trimmed != c.trimmed {
				t.Fatalf("kept %d, trimmed %d; want %d, %d", len(lines), trimmed, c.kept, c.trimmed)
			}
			if len(lines) > 0 && (lines[0].Text != c.first || lines[len(lines)-1].Text != c.last) {
				t.Errorf("kept %q to %q; want %q to %q", lines[0].Text, lines[len(lines)-1].Text, c.first, c.last)
			}
		})
	}
}
