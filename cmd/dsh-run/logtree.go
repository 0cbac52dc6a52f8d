package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dsh-run/dsh/session"
)

// logTree collects the events of a log under the calls they belong to.
type logTree struct {
	path  string // of the log
	roots []*logNode
	// open are the lines that later events add to: of calls, commands,
	// questions and jobs, by their ids.
	open map[string]*logNode
	// at is the line under which the last event stands, nil for the top.
	at *logNode

	events, bad int
	calls       [len(logEndWords)]int // by their ends
}

// logNode is one line of the tree and what hangs below it.
type logNode struct {
	kind   logKind
	text   string // without the ending
	end    string
	how    logEnd // of a call or command
	parent *logNode
	below  []*logNode
}

// logKind says what a line is about.
type logKind int

const (
	aRemark logKind = iota
	aSession
	aCall // or a command
	aQuestion
	aDamage
)

// logEnd is how a call ended.
type logEnd int

const (
	endMissing logEnd = iota
	endOK
	endFailed
	endDenied
)

var logEndWords = [...]string{endMissing: "without a result", endOK: "ok", endFailed: "failed", endDenied: "denied"}

func newLogTree(path string) *logTree {
	return &logTree{path: path, open: map[string]*logNode{}}
}

// damage adds a bad line where the last event stands.
func (t *logTree) damage(e *session.LineError) {
	t.bad++
	t.hang(t.at, aDamage, fmt.Sprintf("line %d (byte %d): %s", e.Line, e.Offset, visible(e.Err.Error())))
}

func (t *logTree) event(e session.Event) bool {
	t.events++
	var f logFacts
	if err := json.Unmarshal(e.Data, &f); err != nil {
		t.hang(t.call(f.CallID), aRemark, otherText(e, f))
		return true
	}
	if f.Value == nil && f.ValueRef != nil {
		f.Value = t.blob(*f.ValueRef)
		f.lost = f.Value == nil
	}
	t.add(e, f)
	return true
}

// blob is a long value, which says how a command ended. One that cannot be read
// is nil: log verify tells that.
func (t *logTree) blob(ref session.Ref) json.RawMessage {
	value, err := session.ReadBlob(t.path, ref)
	if err != nil {
		return nil
	}
	return value
}

func (t *logTree) add(e session.Event, f logFacts) {
	switch e.Type {
	case session.Start:
		t.hang(nil, aSession, sessionText(f, e.Time))
	case session.SandboxMode, session.ApprovalPolicy, session.PermissionPreset:
		t.hang(nil, aRemark, fmt.Sprintf("%s %s (by %s)", e.Type, visible(strings.Trim(string(f.Value), `"`)), visible(f.By)))
	case session.ToolCall:
		t.open[f.CallID] = t.hang(t.open[f.ParentID], aCall, callText(f))
	case session.ToolStarted:
		t.started(f.CallID)
	case session.ToolResult:
		t.end(t.call(f.CallID), f)
	case session.ApprovalAsked:
		t.open["question "+f.ID] = t.hang(t.call(f.CallID), aQuestion, askedText(f))
	case session.ApprovalDecided:
		t.answer(f)
	case session.ProgramLog:
		t.hang(t.call(f.CallID), aRemark, fmt.Sprintf("%s: %s", visible(f.Level), short(f.Text)))
	case session.ExecStart:
		t.open["exec "+f.ID] = t.hang(nil, aCall, "exec "+short(strings.Join(f.Argv, " ")))
	case session.ExecEnd:
		t.end(t.known("exec "+f.ID, "exec "+visible(f.ID)), f)
	case session.JobStart:
		t.open["job "+f.JobID] = t.hang(t.call(f.CallID), aRemark, jobText(f))
	case session.JobEnd:
		t.jobEnd(f)
	case session.ProgramStart:
		t.at = t.call(f.CallID)
	case session.ProgramEnd, session.FSObserved:
	default:
		t.hang(t.call(f.CallID), aRemark, otherText(e, f))
	}
}

// hang adds a line under parent, nil for the top.
func (t *logTree) hang(parent *logNode, kind logKind, text string) *logNode {
	n := &logNode{kind: kind, text: text, parent: parent}
	t.at = parent
	if kind == aCall {
		t.calls[endMissing]++
	}
	if parent == nil {
		t.roots = append(t.roots, n)
	} else {
		parent.below = append(parent.below, n)
	}
	return n
}

// call returns the line of a call, nil for no id. One that is not in the log
// gets a line.
func (t *logTree) call(id string) *logNode {
	if id == "" {
		return nil
	}
	return t.known(id, visible(id))
}

func (t *logTree) known(id, text string) *logNode {
	n := t.open[id]
	if n == nil {
		n = t.hang(t.open[parentID(id)], aCall, text+" (its start is not in the log)")
		t.open[id] = n
	}
	return n
}

// parentID is the id of the call that made the call id, empty for a root call.
func parentID(id string) string { return id[:max(0, strings.LastIndexByte(id, ':'))] }

const hadStarted = "no result, it had started"

func (t *logTree) started(id string) {
	if n := t.call(id); n != nil && n.how == endMissing {
		n.end = hadStarted
	}
}

func (t *logTree) end(n *logNode, f logFacts) {
	if n == nil {
		return
	}
	t.calls[n.how]--
	n.end, n.how = resultText(f), endOf(f)
	t.calls[n.how]++
	t.at = n.parent
}

func (t *logTree) answer(f logFacts) {
	n := t.open["question "+f.ID]
	if n == nil {
		n = t.hang(t.call(f.CallID), aQuestion, "asked, but the question is not in the log")
	}
	n.end = decidedText(f)
	t.at = n.parent
}

func (t *logTree) jobEnd(f logFacts) {
	n := t.open["job "+f.JobID]
	if n == nil {
		n = t.hang(nil, aRemark, "job "+visible(f.JobID)+" (its start is not in the log)")
	}
	n.end = jobEndText(f)
	t.at = n.parent
}

func sessionText(f logFacts, at time.Time) string {
	text := fmt.Sprintf("session %s in %s, %s", visible(f.ID), visible(f.Cwd), at.Format(time.RFC3339))
	if f.Parent != nil {
		text += fmt.Sprintf(", from event %d of %s", f.Parent.Seq, visible(f.Parent.ID))
	}
	return text
}
