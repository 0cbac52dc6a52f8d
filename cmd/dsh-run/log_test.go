package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/session"
)

// data is what an event holds.
type data map[string]any

// logOf writes a log with the events that fill appends, and returns its path.
func logOf(t *testing.T, fill func(log *session.Log, add func(session.Type, data))) string {
	t.Helper()
	log, err := session.Create(filepath.Join(t.TempDir(), "s.jsonl"), "/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	fill(log, func(kind session.Type, d data) {
		if _, err := log.Append(kind, d); err != nil {
			t.Fatal(err)
		}
	})
	return log.Path()
}

// shown returns the lines that log show prints.
func shown(t *testing.T, path string, view logView) []string {
	t.Helper()
	tree := newLogTree(path)
	if err := session.Survey(path, tree.event, tree.damage); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	view.w = bufio.NewWriter(&b)
	view.show(tree)
	if err := view.w.Flush(); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// A long program has longCalls calls; every tenth prints, every hundredth fails,
// every five hundredth is asked about and denied.
const (
	longCalls   = 4800
	longPrinted = longCalls / 10
	longFailed  = longCalls/100 - longDenied
	longDenied  = longCalls / 500
)

// longLog is a log with more than 10,000 events.
func longLog(t *testing.T) string {
	return logOf(t, func(_ *session.Log, add func(session.Type, data)) {
		add(session.ToolCall, data{"call_id": "c1", "root_id": "c1", "tool": "run_code", "args": data{"code": "…"}})
		add(session.ProgramStart, data{"call_id": "c1"})
		for i := 1; i <= longCalls; i++ {
			addCall(add, i)
		}
		add(session.ProgramEnd, data{"call_id": "c1"})
		add(session.ToolResult, data{"call_id": "c1", "duration_ms": 9000})
	})
}

func addCall(add func(session.Type, data), i int) {
	id := fmt.Sprintf("c1:%d", i)
	add(session.ToolCall, data{"call_id": id, "root_id": "c1", "parent_id": "c1", "tool": "read", "args": data{"file_path": fmt.Sprint(i)}})
	result := data{"call_id": id, "duration_ms": i}
	switch {
	case i%500 == 0:
		question := fmt.Sprintf("a%d", i)
		add(session.ApprovalAsked, data{"id": question, "call_id": id, "mode": "read-only", "to": "workspace-write", "reason": "why"})
		add(session.ApprovalDecided, data{"id": question, "call_id": id, "outcome": "rejected", "by": "terminal", "duration_ms": 5})
		result["denied_by"], result["error"] = data{"stage": "approval"}, data{"code": "APPROVAL_REJECTED", "message": "no"}
	case i%100 == 0:
		result["error"] = data{"code": "FS_NOT_FOUND", "message": "gone\nmore"}
	case i%10 == 0:
		add(session.ProgramLog, data{"call_id": "c1", "level": "log", "text": "line\n" + strings.Repeat("x", 1000)})
	}
	add(session.ToolResult, result)
}

func TestALongLogIsOneLineACallUnderItsProgram(t *testing.T) {
	path := longLog(t)
	lines := shown(t, path, logView{})
	prints := longPrinted - longFailed - longDenied
	events := 1 + 4 + 2*longCalls + prints + 2*longDenied
	if events < 10_000 {
		t.Fatalf("the log has %d events only", events)
	}
	if want := 1 + 1 + longCalls + prints + longDenied + 1; len(lines) != want {
		t.Errorf("%d lines, want %d", len(lines), want)
	}
	want := fmt.Sprintf("%d events, %d calls: %d failed, %d denied", events, longCalls+1, longFailed, longDenied)
	if last := lines[len(lines)-1]; last != want {
		t.Errorf("the last line is %q, want %q", last, want)
	}
	if !strings.HasPrefix(lines[1], "c1 run_code ") || !strings.HasSuffix(lines[1], " → ok, 9000 ms") {
		t.Errorf("the program's line is %q", lines[1])
	}
	checkCalls(t, lines[2:len(lines)-1])
}

// checkCalls checks the lines below the program: each call once and in order,
// with how it ended, and its question right below it.
func checkCalls(t *testing.T, lines []string) {
	t.Helper()
	call, next := regexp.MustCompile(`^  c1:(\d+) read \{"file_path":"\d+"\} → (.*), (\d+) ms$`), 1
	for i, line := range lines {
		m := call.FindStringSubmatch(line)
		switch {
		case m != nil:
			want := "ok"
			if next%500 == 0 {
				want = "denied by approval: APPROVAL_REJECTED no"
			} else if next%100 == 0 {
				want = "failed: FS_NOT_FOUND gone"
			}
			if m[1] != fmt.Sprint(next) || m[3] != m[1] || m[2] != want {
				t.Fatalf("line %q, want call %d: %s", line, next, want)
			}
			next++
		case strings.HasPrefix(line, "    asked: read-only → workspace-write: why → decided: rejected by terminal, 5 ms"):
			if !strings.HasPrefix(lines[i-1], fmt.Sprintf("  c1:%d ", next-1)) || (next-1)%500 != 0 {
				t.Fatalf("the question stands below %q", lines[i-1])
			}
		case strings.HasPrefix(line, "  log: "+visible("line\n")+"xxx") && strings.HasSuffix(line, "x… (1005 bytes)"):
		default:
			t.Fatalf("unexpected line %q", line)
		}
	}
	if next != longCalls+1 {
		t.Errorf("%d calls are shown, want %d", next-1, longCalls)
	}
}

func TestOnlyWhatFailedIsShownWithWhoCalledIt(t *testing.T) {
	lines := shown(t, longLog(t), logView{failed: true})
	if want := 2 + longFailed + 2*longDenied + 1; len(lines) != want {
		t.Errorf("%d lines, want %d", len(lines), want)
	}
	for _, line := range lines[2 : len(lines)-1] {
		if !strings.Contains(line, "failed: ") && !strings.Contains(line, "denied by ") && !strings.Contains(line, "asked: ") {
			t.Errorf("line %q", line)
		}
	}
}

// The value of a command that writes much is a blob.
func TestACommandThatFailedIsShownAsFailedHoweverMuchItWrote(t *testing.T) {
	path := logOf(t, func(log *session.Log, add func(session.Type, data)) {
		value, err := log.Put([]byte(`{"exit_code":3,"stdout":{"text":"` + strings.Repeat("x", 100_000) + `"}}`))
		if err != nil {
			t.Fatal(err)
		}
		add(session.ToolCall, data{"call_id": "c1", "tool": "bash", "args": data{}})
		add(session.ToolResult, data{"call_id": "c1", "tool": "bash", "value_ref": value, "duration_ms": 1})
	})
	lines := shown(t, path, logView{failed: true})
	if want := "c1 bash {} → exit code 3, 1 ms"; !slices.Contains(lines, want) {
		t.Errorf("shown:\n%s\nwant the line %q", strings.Join(lines, "\n"), want)
	}
	if err := os.RemoveAll(filepath.Join(session.Folder(path), "blobs")); err != nil {
		t.Fatal(err)
	}
	if lines := shown(t, path, logView{}); !slices.Contains(lines, "c1 bash {} → ok, but its value cannot be read, 1 ms") {
		t.Errorf("without the blob shown:\n%s", strings.Join(lines, "\n"))
	}
}

func TestWhatLiesDeeperIsCounted(t *testing.T) {
	path := longLog(t)
	prints := longPrinted - longFailed - longDenied
	lines := shown(t, path, logView{depth: 1})
	if want := fmt.Sprintf(" → ok, 9000 ms (+%d lines)", longCalls+prints+longDenied); len(lines) != 3 || !strings.HasSuffix(lines[1], want) {
		t.Errorf("%q, want three lines and %q", lines, want)
	}
	if lines := shown(t, path, logView{depth: 2}); len(lines) != 3+longCalls+prints {
		t.Errorf("%d lines at two levels, want %d", len(lines), 3+longCalls+prints)
	}
	if lines := shown(t, path, logView{depth: 1, failed: true}); !strings.HasSuffix(lines[1], fmt.Sprintf("(+%d lines)", longFailed+2*longDenied)) {
		t.Errorf("only failed: %q", lines[1])
	}
}

func TestEventsAreShownInTheirWords(t *testing.T) {
	var torn session.Ref
	path := logOf(t, func(log *session.Log, add func(session.Type, data)) {
		torn, _ = log.Put([]byte("{torn"))
		add(session.Recovered, data{"torn": torn})
		add(session.ToolCall, data{"call_id": "c1", "tool": "bash", "args_text": strings.Repeat("a", 500), "args_ref": torn})
		add(session.ApprovalAsked, data{"id": "a1", "call_id": "c1", "mode": "read-only", "to": "read-only", "reason": "a rule\nasks"})
		add(session.ApprovalLate, data{"id": "a0", "call_id": "c1", "outcome": "allowed-once", "by": "terminal"})
		add(session.JobStart, data{"call_id": "c1", "job_id": "job-1", "command": "make", "state": "running"})
		add(session.JobEnd, data{"job_id": "job-1", "state": "exited", "exit_code": 2, "signal": nil, "duration_ms": 7})
		add(session.ToolStarted, data{"call_id": "c1"})
		add(session.ToolResult, data{"call_id": "c9:1", "value": data{"exit_code": 3}, "duration_ms": 1,
			"confinement": data{"mode": "read-only", "backend": "landlock", "denied": true, "path": "/x", "undone": []data{{"path": "/ws/.git/config", "what": "reverted"}}}})
		add(session.ExecStart, data{"id": "x1", "argv": []string{"ls", "\x1b[2J"}})
		add(session.ReviewScored, data{"call_id": "c1", "score": 7, "reason": data{}})
		add("some/thing", data{"a": 1})
	})
	want := []string{
		"log/recovered: 5 bytes of a torn end are in the blob " + torn.SHA256[:8] + "… (64 bytes)",
		"c1 bash " + strings.Repeat("a", 120) + "… (500 bytes) → no result, it had started",
		"  asked: read-only: " + visible("a rule\nasks") + " → no answer",
		"  approval/late: allowed-once by terminal, too late to count",
		"  job job-1: make → exited, exit code 2, 7 ms",
		`  review/scored {"call_id":"c1","reason":{},"score":7}`,
		"c9:1 (its start is not in the log) → exit code 3 [read-only by landlock, DENIED /x, UNDID /ws/.git/config], 1 ms",
		"exec ls " + visible("\x1b[2J") + " → no result",
		`some/thing {"a":1}`,
		"12 events, 3 calls: 2 without a result, 1 denied",
	}
	if got := shown(t, path, logView{})[1:]; !slices.Equal(got, want) {
		t.Errorf("shown:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAnEndThatNobodySawHasNoDuration(t *testing.T) {
	unknown := data{"code": "TOOL_OUTCOME_UNKNOWN", "message": "check"}
	path := logOf(t, func(_ *session.Log, add func(session.Type, data)) {
		add(session.ToolCall, data{"call_id": "c1", "tool": "bash", "args": data{}})
		add(session.JobStart, data{"call_id": "c1", "job_id": "job-1", "command": "make", "state": "running"})
		add(session.ExecStart, data{"id": "x1", "argv": []string{"make"}})
		add(session.ToolResult, data{"call_id": "c1", "error": unknown, "duration_ms": 0})
		add(session.JobEnd, data{"job_id": "job-1", "state": "lost", "reason": "it may still run", "duration_ms": 0})
		add(session.ExecEnd, data{"id": "x1", "error": unknown, "duration_ms": 0})
	})
	want := []string{
		"c1 bash {} → failed: TOOL_OUTCOME_UNKNOWN check",
		"  job job-1: make → lost (it may still run)",
		"exec make → failed: TOOL_OUTCOME_UNKNOWN check",
	}
	if got := shown(t, path, logView{})[1:4]; !slices.Equal(got, want) {
		t.Errorf("shown:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestABadLineStandsWhereItIsInTheFile(t *testing.T) {
	path := logOf(t, func(_ *session.Log, add func(session.Type, data)) {
		add(session.ToolCall, data{"call_id": "c1", "tool": "run_code"})
		for i := 1; i <= 2; i++ {
			addCall(add, i)
		}
		add(session.ToolResult, data{"call_id": "c1"})
	})
	lines := linesOf(t, path)
	// Between the two calls, in the place of the second's start, and at the end.
	damaged := slices.Concat(lines[:4], [][]byte{[]byte("{bad\n"), bytes.Repeat([]byte{0}, 9), []byte("\n")}, lines[5:], [][]byte{[]byte("{torn")})
	if err := os.WriteFile(path, slices.Concat(damaged...), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`^c1 run_code  → ok, 0 ms$`,
		`^  c1:1 read .* → ok, 1 ms$`,
		`^  line 5 \(byte \d+\): not a JSON event`,
		`^  line 6 \(byte \d+\): 9 NUL bytes and no event$`,
		`^  c1:2 \(its start is not in the log\) → ok, 2 ms$`,
		`^line 9 \(byte \d+\): torn, 5 bytes without a newline`,
		`^6 events, 3 calls; 3 bad lines$`,
	}
	got := shown(t, path, logView{})[1:]
	for i, line := range got {
		if len(got) != len(want) || !regexp.MustCompile(want[i]).MatchString(line) {
			t.Fatalf("shown:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func linesOf(t *testing.T, path string) [][]byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	return lines[:len(lines)-1]
}

// exported returns the document of a log, decoded, and its problems.
func exported(t *testing.T, path string) (document map[string]any, problems []exportProblem) {
	t.Helper()
	x := newExport()
	if err := session.Survey(path, x.event, x.damage); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := &exportWriter{w: bufio.NewWriter(&b), path: path, problems: x.problems}
	w.document(x)
	if w.w.Flush() != nil || w.err != nil {
		t.Fatal(w.err)
	}
	if err := json.Unmarshal(b.Bytes(), &document); err != nil {
		t.Fatalf("%v in %s", err, b.String())
	}
	return document, w.problems
}

// seqs collects the numbers of all events in a document.
func seqs(v any) (list []int) {
	switch v := v.(type) {
	case map[string]any:
		if _, isProblem := v["problem"]; isProblem {
			return nil
		}
		for name, member := range v {
			if n, ok := member.(float64); ok && name == "seq" {
				list = append(list, int(n))
			}
			list = append(list, seqs(member)...)
		}
	case []any:
		for _, item := range v {
			list = append(list, seqs(item)...)
		}
	}
	return list
}

func TestAnExportHasEveryEventOnce(t *testing.T) {
	for name, path := range map[string]string{
		"a long log": longLog(t),
		"odd events": logOf(t, func(_ *session.Log, add func(session.Type, data)) {
			add(session.Start, data{"id": "again"})
			add(session.SandboxMode, data{"value": "read-only"})
			add(session.ToolResult, data{"call_id": "c1:1"})
			add(session.ToolResult, data{"call_id": "c1:1"})
			add(session.ToolCall, data{"call_id": "c1"})
			add(session.ToolCall, data{"call_id": "c1:1", "parent_id": "c1"})
			add(session.ToolCall, data{"call_id": 7})
			add(session.ApprovalDecided, data{"id": "a1", "call_id": "c1"})
			add(session.ApprovalAsked, data{"id": "a1", "call_id": "c1"})
			add(session.ApprovalLate, data{"id": "a1", "call_id": "c1"})
			add(session.ApprovalAsked, data{"id": "a1"})
			add(session.JobEnd, data{"job_id": "job-1"})
			add(session.JobStart, data{"job_id": "job-1", "call_id": "c1"})
			add(session.ExecEnd, data{"id": "x1"})
			add(session.FSObserved, data{"path": "/x"})
			add(session.ReviewScored, data{"call_id": "c1"})
			add("some/thing", nil)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			document, problems := exported(t, path)
			got := seqs(document)
			slices.Sort(got)
			for i, seq := range got {
				if seq != i+1 {
					t.Fatalf("event %d is there twice or not at all", i+1)
				}
			}
			if n := len(linesOf(t, path)); len(got) != n || document["events"] != float64(n) || len(problems) > 0 {
				t.Errorf("%d events in the document, which names %v, want %d; problems %v", len(got), document["events"], n, problems)
			}
		})
	}
}

// at follows names and indexes into a document.
func at(t *testing.T, v any, steps ...any) any {
	t.Helper()
	for _, step := range steps {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			list, _ := v.([]any)
			if s >= len(list) {
				t.Fatalf("no item %d in %v", s, v)
			}
			v = list[s]
		}
	}
	return v
}

func TestAnExportHasTheBlobsInPlace(t *testing.T) {
	path := logOf(t, func(log *session.Log, add func(session.Type, data)) {
		put := func(text string) session.Ref {
			ref, err := log.Put([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			return ref
		}
		add(session.ToolCall, data{"call_id": "c1", "tool": "run_code", "args_text": `{"a`, "args_ref": put(`{"a":12345678901234567890}`)})
		add(session.ProgramStart, data{"call_id": "c1", "program": put("return 1")})
		add(session.ToolCall, data{"call_id": "c1:1", "parent_id": "c1", "tool": "read", "args_text": "{b", "args_ref": put("{bad")})
		add(session.ApprovalAsked, data{"id": "a1", "call_id": "c1:1", "preview_ref": put("-old\n+new")})
		add(session.ToolResult, data{"call_id": "c1:1", "value_ref": put(`"<&>"`), "content_ref": put(`[]`),
			"error": data{"code": "X", "details_ref": put(`{"d":1}`)}})
		add(session.ToolResult, data{"call_id": "c1", "value_ref": put("no json"), "content_ref": session.Ref{SHA256: "../x", Bytes: 1},
			"error": data{"details_ref": session.Ref{SHA256: strings.Repeat("0", 64), Bytes: 1}}})
	})
	document, problems := exported(t, path)
	c1 := at(t, document, "calls", 0)
	sub := at(t, c1, "calls", 0)
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"arguments", at(t, c1, "call", "args", "a"), 12345678901234567890.0},
		{"arguments' text", at(t, c1, "call", "args_text"), nil},
		{"program", at(t, c1, "program", "source"), "return 1"},
		{"arguments that are no JSON", at(t, sub, "call", "args_text"), "{bad"},
		{"preview", at(t, sub, "approvals", 0, "asked", "preview"), "-old\n+new"},
		{"value", at(t, sub, "result", "value"), "<&>"},
		{"reference of the value", at(t, sub, "result", "value_ref"), nil},
		{"details", at(t, sub, "result", "error", "details", "d"), 1.0},
		{"code beside the details", at(t, sub, "result", "error", "code"), "X"},
		{"reference of what is no JSON", at(t, c1, "result", "value_ref", "bytes"), 7.0},
		{"reference that is no name", at(t, c1, "result", "content_ref", "sha256"), "../x"},
		{"reference that is missing", at(t, c1, "result", "error", "details_ref", "bytes"), 1.0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	if len(problems) != 3 || problems[0].Seq != 7 || !strings.Contains(problems[1].Problem, "want 64 hex digits") {
		t.Errorf("problems %+v, want three of event 7", problems)
	}
}
