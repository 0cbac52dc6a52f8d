package runtime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A report is what a worker says of its finished run, beside the value. The
// parent believes it only as far as it can check it.
type report struct {
	Failure     *Failure      `json:"failure,omitempty"`
	HasValue    bool          `json:"has_value,omitempty"`
	LogsTrimmed int           `json:"logs_trimmed,omitempty"`
	Unanswered  []int         `json:"unanswered,omitempty"`
	NotStarted  []int         `json:"not_started,omitempty"`
	Compute     time.Duration `json:"compute"`
	Calls       int           `json:"calls"`
}

func appendDone(buf []byte, out Outcome) ([]byte, error) {
	meta, err := json.Marshal(report{out.Failure, out.Value != nil, out.LogsTrimmed,
		out.Unanswered, out.NotStarted, out.Usage.Compute, out.Usage.Calls})
	if err != nil {
		return buf, err
	}
	at := len(buf)
	buf = appendBlob(openFrame(buf, frameDone, 0), meta)
	return closeFrame(append(buf, out.Value...), at), nil
}

// fromWorker are the failures that a worker can know of. The others are the
// host's or the parent's to find.
var fromWorker = []FailureKind{Syntax, Exception, Timeout, Deadlock, Abort, MemoryLimit,
	OutputLimit, CallLimit, InvalidOutput, SourceLimit}

// parseDone checks a report as far as it stands alone.
func parseDone(payload []byte, limits Limits) (report, json.RawMessage, error) {
	b := body{rest: payload}
	meta := b.blob()
	switch {
	case b.bad:
		return report{}, nil, breachf("an outcome frame that ends too early")
	case len(meta) > longestReport(limits):
		return report{}, nil, breachf("a report of %d bytes, at most %d are legal", len(meta), longestReport(limits))
	}
	var rep report
	strict := json.NewDecoder(bytes.NewReader(meta))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&rep); err != nil {
		return report{}, nil, breachf("an outcome that cannot be decoded: %v", err)
	}
	if err := rep.check(b.rest, limits); err != nil {
		return report{}, nil, err
	}
	if !rep.HasValue {
		return rep, nil, nil
	}
	return rep, slices.Clone(json.RawMessage(b.rest)), nil
}

func (rep *report) check(value []byte, limits Limits) error {
	switch {
	case rep.Compute < 0 || rep.Calls < 0 || rep.LogsTrimmed < 0:
		return breachf("an outcome with a negative count")
	case rep.Failure != nil && (rep.HasValue || len(rep.Unanswered) > 0):
		return breachf("an outcome that is a failure and a success")
	case !rep.HasValue && len(value) > 0:
		return breachf("an outcome with a value that is none")
	case len(value) > limits.OutputBytes:
		return breachf("a value of %d bytes, at most %d are legal", len(value), limits.OutputBytes)
	case rep.HasValue && !isJSON(value):
		return breachf("a value that is not JSON")
	}
	if rep.Failure == nil {
		return nil
	}
	return rep.Failure.check()
}

func (f *Failure) check() error {
	switch {
	case !slices.Contains(fromWorker, f.Kind):
		return breachf("a failure of the kind %.40q", string(f.Kind))
	case f.Kind == Timeout && f.Clock != ComputeClock && f.Clock != WallClock,
		f.Kind != Timeout && f.Clock != "":
		return breachf("a %s failure with the clock %.40q", f.Kind, string(f.Clock))
	case f.Line < 0 || f.Column < 0 || f.Line > maxPosition || f.Column > maxPosition:
		return breachf("a failure at line %d, column %d", f.Line, f.Column)
	case f.Thrown != nil && !isObject(f.Thrown):
		return breachf("a failure that threw what is not a JSON object")
	}
	return nil
}

func isObject(text json.RawMessage) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] == '{' && isJSON(text)
}

// isJSON also refuses what is not UTF-8, which json.Valid lets pass in strings.
func isJSON(text []byte) bool { return utf8.Valid(text) && json.Valid(text) }

// checkCalls compares a report with the calls that were started: bit n of the
// set is call n. open are those without an answer.
func (rep *report) checkCalls(started func(int) bool, open []int, limits Limits) error {
	if !increasing(rep.Unanswered) || !increasing(rep.NotStarted) {
		return breachf("an outcome whose calls are out of order")
	}
	for _, n := range rep.Unanswered {
		if !started(n) {
			return breachf("an outcome with the unanswered call %d, which never came", n)
		}
	}
	for _, n := range rep.NotStarted {
		if started(n) || n > limits.Calls {
			return breachf("an outcome in which call %d did not start", n)
		}
	}
	if rep.Failure != nil {
		return nil
	}
	for _, n := range open {
		if !slices.Contains(rep.Unanswered, n) {
			return breachf("an outcome in which call %d has an answer that nobody gave", n)
		}
	}
	return nil
}

func increasing(numbers []int) bool {
	last := 0
	for _, n := range numbers {
		if n <= last {
			return false
		}
		last = n
	}
	return true
}

// Exit codes of a worker whose program did not yield to a stop.
const (
	exitCompute = 81 + iota
	exitWall
	exitMemory
	exitStopped
	exitUnfit = 125
)

func exitCodeFor(kind FailureKind, clock Clock) int {
	switch {
	case kind == Timeout && clock == WallClock:
		return exitWall
	case kind == Timeout:
		return exitCompute
	case kind == MemoryLimit:
		return exitMemory
	}
	return exitStopped
}

// accountingSlack is how much later the kernel may account processor time than
// it enforces the limit.
const accountingSlack = 100 * time.Millisecond

// processor is the kernel's limit of a worker's processor time, in case that
// its own watchdog fails. It is twice the compute limit and more, because it
// counts the collector and the transformer too.
func (l Limits) processor() time.Duration {
	return (2*l.Compute + 2*time.Second).Truncate(time.Second) + time.Second
}

// A death is what is known of a worker that ended without an outcome.
type death struct {
	code    int           // exit code, -1: a signal
	signal  string        // its name
	used    time.Duration // of processor time, where a signal ended it
	words   string        // the kept part of stderr
	started bool          // the program had been compiled
}

// diagnose turns a death into the run's failure.
func (d death) diagnose(limits Limits) *Failure {
	switch {
	case d.code == exitCompute, d.used >= limits.processor()-accountingSlack:
		return timeout(ComputeClock, limits.Compute)
	case d.code == exitWall:
		return timeout(WallClock, limits.Wall)
	case d.code == exitMemory, speaksOfMemory(d.words):
		return outOfMemory(limits.Memory)
	case !d.started && strings.Contains(d.words, "stack overflow"):
		return &Failure{Kind: Syntax, Message: "nested too deeply to parse"}
	}
	return &Failure{Kind: EngineExit, Message: "the worker process ended in the middle of the run: " + d.how()}
}

func (d death) how() string {
	how := fmt.Sprintf("exit code %d", d.code)
	if d.code < 0 {
		how = "signal: " + d.signal
	}
	if last := lastWords(d.words); last != "" {
		how += ": " + last
	}
	return how
}

func speaksOfMemory(words string) bool {
	words = strings.ToLower(words)
	return slices.ContainsFunc([]string{"out of memory", "cannot allocate", "pthread_create failed",
		"failed to create new os thread"}, func(sign string) bool { return strings.Contains(words, sign) })
}

// lastWords is the line of stderr that says most: that of a fatal error, else
// the last one.
func lastWords(words string) string {
	last := ""
	for line := range strings.Lines(words) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "fatal error:") || strings.HasPrefix(line, "panic:") {
			return clip(line, 300)
		}
		if line != "" {
			last = line
		}
	}
	return clip(last, 300)
}

func clip(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
