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
	roots []*logNode
	calls map[string]*logNode
}

// logNode is one line of the tree and what hangs below it.
type logNode struct {
	text  string // without the ending
	end   string
	below []*logNode
}

func newLogTree() *logTree { return &logTree{calls: map[string]*logNode{}} }

// logFacts are the members of all events that the tree shows.
type logFacts struct {
	ID       string          `json:"id"`
	Cwd      string          `json:"cwd"`
	Value    json.RawMessage `json:"value"`
	By       string          `json:"by"`
	CallID   string          `json:"call_id"`
	ParentID string          `json:"parent_id"`
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"args"`
	ArgsText string          `json:"args_text"`
	Caller   struct {
		Kind string `json:"kind"`
		Line int    `json:"line"`
	} `json:"caller"`
	Error    *loggedError `json:"error"`
	DeniedBy *struct {
		Stage string `json:"stage"`
		Rule  string `json:"rule"`
	} `json:"denied_by"`
	Confinement *struct {
		Mode    string `json:"mode"`
		Backend string `json:"backend"`
		Denied  bool   `json:"denied"`
		Path    string `json:"path"`
	} `json:"confinement"`
	DurationMS int64    `json:"duration_ms"`
	Reason     string   `json:"reason"`
	Mode       string   `json:"mode"`
	To         string   `json:"to"`
	Outcome    string   `json:"outcome"`
	Level      string   `json:"level"`
	Text       string   `json:"text"`
	Status     string   `json:"status"`
	Argv       []string `json:"argv"`
	ExitCode   *int     `json:"exit_code"`
	JobID      string   `json:"job_id"`
	Path       string   `json:"path"`
}

type loggedError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// text is the code and the first line of the message.
func (e *loggedError) text() string {
	if e == nil {
		return "no reason was logged"
	}
	first, _, _ := strings.Cut(e.Message, "\n")
	return e.Code + " " + visible(first)
}

func (t *logTree) add(e session.Event) {
	var f logFacts
	if err := json.Unmarshal(e.Data, &f); err != nil {
		t.root(fmt.Sprintf("%s (data that cannot be read: %v)", e.Type, err))
		return
	}
	switch e.Type {
	case session.Start:
		t.root(fmt.Sprintf("session %s in %s, %s", f.ID, visible(f.Cwd), e.Time.Format(time.RFC3339)))
	case session.SandboxMode, session.ApprovalPolicy, session.PermissionPreset:
		t.root(fmt.Sprintf("%s %s (by %s)", e.Type, strings.Trim(string(f.Value), `"`), visible(f.By)))
	case session.ToolCall:
		t.calls[f.CallID] = t.under(f.ParentID, callText(f))
	case session.ToolResult:
		t.endOf(f.CallID, resultText(f))
	case session.ApprovalAsked:
		t.under(f.CallID, fmt.Sprintf("asked: %s → %s: %s", f.Mode, f.To, visible(f.Reason)))
	case session.ApprovalDecided:
		t.under(f.CallID, fmt.Sprintf("decided: %s by %s, %d ms", f.Outcome, orNobody(f.By), f.DurationMS))
	case session.ProgramLog:
		t.under(f.CallID, fmt.Sprintf("%s: %s", f.Level, visible(f.Text)))
	case session.ExecStart:
		t.calls[f.ID] = t.root("exec " + visible(strings.Join(f.Argv, " ")))
	case session.ExecEnd:
		t.endOf(f.ID, resultText(f))
	case session.ProgramStart, session.ProgramEnd, session.FSObserved, session.ToolStarted:
	default:
		t.under(f.CallID, otherText(e.Type, f))
	}
}

func (t *logTree) root(text string) *logNode {
	n := &logNode{text: text}
	t.roots = append(t.roots, n)
	return n
}

// under hangs a line below a call, or at the top where the call is unknown.
func (t *logTree) under(call, text string) *logNode {
	parent := t.calls[call]
	if parent == nil {
		return t.root(text)
	}
	n := &logNode{text: text}
	parent.below = append(parent.below, n)
	return n
}

func (t *logTree) endOf(call, text string) {
	if n := t.calls[call]; n != nil {
		n.end = text
		return
	}
	t.root("the end of an unknown call " + visible(call) + ": " + text)
}

// maxArgs is how many characters of arguments a line shows.
const maxArgs = 120

func callText(f logFacts) string {
	args := []rune(visible(string(f.Args) + f.ArgsText))
	if len(args) > maxArgs {
		args = append(args[:maxArgs], '…')
	}
	text := fmt.Sprintf("%s %s %s", visible(f.CallID), visible(f.Tool), string(args))
	if f.Caller.Line > 0 {
		text += fmt.Sprintf(" (line %d)", f.Caller.Line)
	}
	return text
}

func resultText(f logFacts) string {
	text := "ok"
	switch {
	case f.DeniedBy != nil:
		text = "denied by " + strings.TrimSpace(f.DeniedBy.Stage+" "+visible(f.DeniedBy.Rule)) + ": " + f.Error.text()
	case f.Error != nil:
		text = "failed: " + f.Error.text()
	case f.ExitCode != nil:
		text = fmt.Sprintf("exit code %d", *f.ExitCode)
	}
	if c := f.Confinement; c != nil {
		text += fmt.Sprintf(" [%s by %s", c.Mode, c.Backend)
		if c.Denied {
			text += ", DENIED " + visible(c.Path)
		}
		text += "]"
	}
	return fmt.Sprintf("%s, %d ms", text, f.DurationMS)
}

func otherText(t session.Type, f logFacts) string {
	text := string(t)
	for _, word := range []string{f.JobID, f.Status, f.Path, f.Reason} {
		if word != "" {
			text += " " + visible(word)
		}
	}
	return text
}

func orNobody(by string) string {
	if by == "" {
		return "nobody"
	}
	return visible(by)
}

func (t *logTree) text() string {
	var b strings.Builder
	for _, n := range t.roots {
		n.write(&b, "")
	}
	return b.String()
}

func (n *logNode) write(b *strings.Builder, indent string) {
	b.WriteString(indent + n.text)
	if n.end != "" {
		b.WriteString(" → " + n.end)
	}
	b.WriteString("\n")
	for _, child := range n.below {
		child.write(b, indent+"  ")
	}
}
