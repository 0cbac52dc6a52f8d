package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Version of the log format, written in session/start. A log with a newer one
// can be read but not resumed.
const Version = 1

// Type names what an event records.
type Type string

// The event types. Their data is declared by the packages that write them.
const (
	Start            Type = "session/start"
	Recovered        Type = "log/recovered"
	SandboxMode      Type = "sandbox/mode"
	SandboxWorktree  Type = "sandbox/worktree"
	ApprovalPolicy   Type = "approval/policy"
	PermissionPreset Type = "permission/preset"
	ApprovalAsked    Type = "approval/asked"
	ApprovalDecided  Type = "approval/decided"
	ApprovalLate     Type = "approval/late"
	ToolCall         Type = "tool/call"
	ToolStarted      Type = "tool/started"
	ToolResult       Type = "tool/result"
	FSObserved       Type = "fs/observed"
	ReviewScored     Type = "review/scored"
	ReviewGrant      Type = "review/grant"
	ProgramStart     Type = "ptc/start"
	ProgramEnd       Type = "ptc/end"
	ProgramLog       Type = "ptc/log"
	ExecStart        Type = "exec/start"
	ExecEnd          Type = "exec/end"
	JobStart         Type = "job/start"
	JobEnd           Type = "job/end"
)

var knownTypes = map[Type]bool{
	Start: true, Recovered: true, SandboxMode: true, SandboxWorktree: true, ApprovalPolicy: true,
	PermissionPreset: true, ApprovalAsked: true, ApprovalDecided: true, ApprovalLate: true,
	ToolCall: true, ToolStarted: true, ToolResult: true, FSObserved: true, ReviewScored: true,
	ReviewGrant: true, ProgramStart: true, ProgramEnd: true, ProgramLog: true,
	ExecStart: true, ExecEnd: true, JobStart: true, JobEnd: true,
}

// ignorableTypes are those that a reader which does not know them may skip.
var ignorableTypes = map[Type]bool{Recovered: true, ApprovalLate: true, ToolStarted: true}

// Event is one line of a log.
type Event struct {
	Seq  uint64          `json:"seq"`
	Time time.Time       `json:"time"`
	Type Type            `json:"type"`
	Data json.RawMessage `json:"data"`
	// Prev is the hex SHA-256 of the line before, empty on the first.
	Prev string `json:"prev"`
	// Ignorable marks an event that a reader may skip when it does not know
	// its type.
	Ignorable bool `json:"ignorable,omitempty"`
}

// Header is the data of session/start.
type Header struct {
	ID      string  `json:"id"`
	Cwd     string  `json:"cwd"`
	Version int     `json:"version"`
	Parent  *Parent `json:"parent,omitempty"`
}

// Parent names the session that a fork or a sub-session came from, and the
// last event it shares with it.
type Parent struct {
	ID  string `json:"id"`
	Seq uint64 `json:"seq"`
	// Sub says that this is a sub-session, whose permissions are fixed, or a
	// fork of one, and not a plain fork.
	Sub bool `json:"sub,omitempty"`
}

const timeFormat = "2006-01-02T15:04:05.000000000Z07:00"

// encode returns the event as the line that is written, newline included.
func (e Event) encode() []byte {
	b := make([]byte, 0, len(e.Data)+192)
	b = append(b, `{"seq":`...)
	b = strconv.AppendUint(b, e.Seq, 10)
	b = append(b, `,"time":"`...)
	b = e.Time.UTC().AppendFormat(b, timeFormat)
	b = append(b, `","type":`...)
	b = append(b, quote(string(e.Type))...)
	b = append(b, `,"data":`...)
	b = append(b, e.Data...)
	if e.Ignorable {
		b = append(b, `,"ignorable":true`...)
	}
	b = append(b, `,"prev":"`...)
	b = append(b, e.Prev...)
	return append(b, "\"}\n"...)
}

// quote returns s as a JSON string, without escaping what only HTML needs
// escaped.
func quote(s string) []byte {
	quoted, err := marshalData(s)
	if err != nil {
		panic("session: a string cannot be encoded: " + err.Error())
	}
	return quoted
}

// marshalData encodes the data of an event on one line, without escaping what
// only HTML needs escaped.
func marshalData(data any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(data); err != nil {
		return nil, fmt.Errorf("event data: %w", err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// chain is the state that links a line to the one before.
type chain struct {
	seq  uint64
	prev string
}

// link checks that e is the event that follows. Behind a gap, lines that hold
// no event, later ones follow too.
func (c chain) link(e Event, gap bool) error {
	switch {
	case gap && e.Seq > c.seq+1:
		return nil
	case e.Seq != c.seq+1:
		return fmt.Errorf("seq is %d, want %d", e.Seq, c.seq+1)
	case e.Prev != c.prev:
		return fmt.Errorf("prev is %q, but the line before has the SHA-256 %q", e.Prev, c.prev)
	}
	return nil
}

// take goes on from e, which body, without its newline, holds.
func (c *chain) take(e Event, body []byte) {
	sum := sha256.Sum256(body)
	c.seq, c.prev = e.Seq, hex.EncodeToString(sum[:])
}
