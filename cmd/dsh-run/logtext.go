package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

// logFacts are the members of all events that the tree shows.
type logFacts struct {
	ID       string          `json:"id"`
	Cwd      string          `json:"cwd"`
	Parent   *session.Parent `json:"parent"`
	Value    json.RawMessage `json:"value"`
	ValueRef *session.Ref    `json:"value_ref"`
	lost     bool            // the blob of ValueRef cannot be read
	By       string          `json:"by"`
	Why      string          `json:"why"`
	CallID   string          `json:"call_id"`
	ParentID string          `json:"parent_id"`
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"args"`
	ArgsText string          `json:"args_text"`
	Caller   struct {
		Line int `json:"line"`
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
		Undone  []struct {
			Path string `json:"path"`
		} `json:"undone"`
	} `json:"confinement"`
	DurationMS int64        `json:"duration_ms"`
	Reason     string       `json:"reason"`
	Mode       string       `json:"mode"`
	To         string       `json:"to"`
	Outcome    string       `json:"outcome"`
	Level      string       `json:"level"`
	Text       string       `json:"text"`
	Argv       []string     `json:"argv"`
	ExitCode   *int         `json:"exit_code"`
	Signal     *string      `json:"signal"`
	JobID      string       `json:"job_id"`
	Command    string       `json:"command"`
	State      string       `json:"state"`
	Torn       *session.Ref `json:"torn"`
}

type loggedError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// unseen reports whether the end was written when the session was resumed, by a
// process that cannot know how long it took.
func (e *loggedError) unseen() bool {
	return e != nil && (e.Code == string(tools.ToolNotStarted) || e.Code == string(tools.ToolOutcomeUnknown))
}

// text is the code and the first line of the message.
func (e *loggedError) text() string {
	if e == nil {
		return "no reason was logged"
	}
	first, _, _ := strings.Cut(e.Message, "\n")
	return visible(e.Code) + " " + short(first)
}

const (
	maxArgs = 120 // characters of arguments that a line shows
	maxText = 400 // characters of any other text
)

func short(text string) string { return clipped(text, maxText) }

// clipped makes text one line of at most n characters.
func clipped(text string, n int) string {
	// The rest is not looked at: it can be many MiB long.
	seen := text[:min(len(text), n*utf8.UTFMax)]
	head := []rune(visible(seen))
	if len(head) <= n && len(seen) == len(text) {
		return string(head)
	}
	return fmt.Sprintf("%s… (%d bytes)", string(head[:min(len(head), n)]), len(text))
}

func callText(f logFacts) string {
	text := fmt.Sprintf("%s %s %s", visible(f.CallID), visible(f.Tool), clipped(string(f.Args)+f.ArgsText, maxArgs))
	if f.Caller.Line > 0 {
		text += fmt.Sprintf(" (line %d)", f.Caller.Line)
	}
	return text
}

// exitCode is that of a command, also of one that a tool ran.
func (f logFacts) exitCode() int {
	code := f.ExitCode
	if code == nil {
		var v struct {
			ExitCode *int `json:"exit_code"`
		}
		if json.Unmarshal(f.Value, &v) == nil {
			code = v.ExitCode
		}
	}
	if code == nil {
		return 0
	}
	return *code
}

func endOf(f logFacts) logEnd {
	failed := f.Error != nil || f.exitCode() != 0
	switch {
	case f.DeniedBy != nil, failed && f.Confinement != nil && f.Confinement.Denied:
		return endDenied
	case failed:
		return endFailed
	default:
		return endOK
	}
}

func resultText(f logFacts) string {
	text := "ok"
	switch code := f.exitCode(); {
	case f.DeniedBy != nil:
		text = "denied by " + strings.TrimSpace(visible(f.DeniedBy.Stage)+" "+visible(f.DeniedBy.Rule)) + ": " + f.Error.text()
	case f.Error != nil:
		text = "failed: " + f.Error.text()
	case f.lost:
		text = "ok, but its value cannot be read"
	case code != 0, f.ExitCode != nil:
		text = fmt.Sprintf("exit code %d", code)
	}
	if c := f.Confinement; c != nil {
		text += fmt.Sprintf(" [%s by %s", visible(c.Mode), visible(c.Backend))
		if c.Denied {
			text += ", DENIED " + visible(c.Path)
		}
		for _, u := range c.Undone {
			text += ", UNDID " + visible(u.Path)
		}
		text += "]"
	}
	if f.Error.unseen() {
		return text
	}
	return fmt.Sprintf("%s, %d ms", text, f.DurationMS)
}

func askedText(f logFacts) string {
	change := visible(f.Mode)
	if f.To != f.Mode {
		change += " → " + visible(f.To)
	}
	return fmt.Sprintf("asked: %s: %s", change, short(f.Reason))
}

func decidedText(f logFacts) string {
	text := fmt.Sprintf("decided: %s by %s", visible(f.Outcome), orNobody(f.By))
	if f.Why != "" {
		text += " (" + short(f.Why) + ")"
	}
	return fmt.Sprintf("%s, %d ms", text, f.DurationMS)
}

func jobText(f logFacts) string { return fmt.Sprintf("job %s: %s", visible(f.JobID), short(f.Command)) }

func jobEndText(f logFacts) string {
	text := visible(f.State)
	if f.ExitCode != nil {
		text += fmt.Sprintf(", exit code %d", *f.ExitCode)
	}
	if f.Signal != nil {
		text += ", signal " + visible(*f.Signal)
	}
	if f.Reason != "" {
		text += " (" + short(f.Reason) + ")"
	}
	if f.State == string(local.JobLost) {
		return text
	}
	return fmt.Sprintf("%s, %d ms", text, f.DurationMS)
}

// otherText is the line of an event that is rare or unknown.
func otherText(e session.Event, f logFacts) string {
	switch {
	case e.Type == session.Recovered && f.Torn != nil:
		return fmt.Sprintf("%s: %d bytes of a torn end are in the blob %s", e.Type, f.Torn.Bytes, clipped(f.Torn.SHA256, 8))
	case e.Type == session.ApprovalLate:
		return fmt.Sprintf("%s: %s by %s, too late to count", e.Type, visible(f.Outcome), orNobody(f.By))
	default:
		return visible(string(e.Type)) + " " + clipped(string(e.Data), maxArgs)
	}
}

func orNobody(by string) string {
	if by == "" {
		return "nobody"
	}
	return visible(by)
}
