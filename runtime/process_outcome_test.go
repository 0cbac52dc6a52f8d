package runtime

import (
	"strings"
	"testing"
	"time"
)

func TestDiagnose(t *testing.T) {
	limits := Limits{Compute: time.Second}.WithDefaults()
	for _, c := range []struct {
		claim   string
		death   death
		kind    FailureKind
		message string
	}{
		{"a watchdog's exit code names the compute clock", death{code: exitCompute}, Timeout, "computed"},
		{"a watchdog's exit code names the wall clock", death{code: exitWall}, Timeout, "calls included"},
		{"a fuse's exit code names the memory", death{code: exitMemory}, MemoryLimit, "512 MiB"},
		{"a kill after all processor time is the compute clock's", death{code: -1, signal: "killed", used: limits.processor()}, Timeout, "computed"},
		{"a kill before that is not", death{code: -1, signal: "killed", used: limits.Compute}, EngineExit, "signal: killed"},
		{"a thread that cannot be made is the memory limit", death{code: 2, words: "runtime: failed to create new OS thread (have 9 already; errno=11)"}, MemoryLimit, ""},
		{"a parser's stack that overflows is a syntax error", death{code: 2, words: "fatal error: stack overflow"}, Syntax, "deep"},
		{"a program's stack that overflows is not", death{code: 2, started: true, words: "fatal error: stack overflow"}, EngineExit, "stack overflow"},
		{"the line of a panic says more than the last one", death{code: 2, started: true, words: "panic: x\ngoroutine 1\nexit"}, EngineExit, "panic: x"},
		{"other last words are told", death{code: exitUnfit, words: "dsh-run worker: no\n\n"}, EngineExit, "worker: no"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			f := c.death.diagnose(limits)
			if f.Kind != c.kind || !strings.Contains(f.Message, c.message) {
				t.Errorf("failure is %v; want %s with %q", f, c.kind, c.message)
			}
			if (f.Kind == Timeout) != (f.Clock != "") {
				t.Errorf("a %s failure has the clock %q", f.Kind, f.Clock)
			}
		})
	}
}

func TestLastWordsAreBounded(t *testing.T) {
	l := &lastOutput{done: make(chan struct{})}
	l.add([]byte("fatal error: first\n"))
	for range 1000 {
		l.add([]byte(strings.Repeat("é", 300)))
	}
	l.add([]byte("\nlast"))
	close(l.done)
	words := l.wait()
	if len(words) > 2*keptOutput+10 || lastWords(words) != "fatal error: first" || !strings.HasSuffix(words, "last") {
		t.Errorf("%d bytes are kept, from %.30q to %q", len(words), words, words[len(words)-10:])
	}
}
