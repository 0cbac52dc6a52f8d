package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// finding is a line, what it holds, and what is wrong with it.
type finding struct {
	line
	event   Event
	isEvent bool
	after   chain // what the next line has to continue
	problem error // nil: the line is the event that follows
}

func (f finding) lineError(path string) *LineError {
	return &LineError{Path: path, Line: f.number, Offset: f.offset, Torn: !f.ended && !f.isEvent, Err: f.problem}
}

// inspector judges one line after another.
type inspector struct {
	chain chain
	limit int
	// gap says that lines without an event precede, which may have held any
	// number of them.
	gap bool
}

// inspect judges the line that follows. After damage it takes the chain up from
// the next event.
func (in *inspector) inspect(l line) finding {
	f := finding{line: l, after: in.chain}
	body, marks := trim(l)
	if f.event, f.problem = in.decode(l, body); f.problem != nil {
		in.gap = true
		return f
	}
	f.isEvent = true
	if f.problem = in.chain.link(f.event, in.gap); f.problem == nil {
		f.problem = marks
	}
	in.chain.take(f.event, body)
	in.gap, f.after = false, in.chain
	return f
}

// decode returns the event that body, the trimmed line l, is.
func (in *inspector) decode(l line, body []byte) (Event, error) {
	switch {
	case l.long:
		return Event{}, fmt.Errorf("%d bytes long, more than the %d that a line may have%s", l.size, in.limit, l.nulText())
	case len(body) == 0 && l.nuls > 0:
		return Event{}, fmt.Errorf("%d NUL bytes and no event", l.nuls)
	case len(bytes.TrimSpace(body)) == 0:
		return Event{}, errors.New("a blank line")
	}
	e, err := decodeEvent(body)
	switch {
	case err != nil && !l.ended:
		err = fmt.Errorf("torn, %d bytes without a newline%s: %w", l.size, l.nulText(), err)
	case err != nil && l.nuls > 0:
		err = fmt.Errorf("%w%s", err, l.nulText())
	}
	return e, err
}

func (l line) nulText() string {
	if l.nuls == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of them NUL bytes)", l.nuls)
}

// decodeEvent decodes a whole line.
func decodeEvent(body []byte) (Event, error) {
	var e Event
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(&e); err != nil {
		return e, fmt.Errorf("not a JSON event: %w", err)
	}
	if rest := bytes.TrimSpace(body[dec.InputOffset():]); len(rest) > 0 {
		return e, errors.New("more than one JSON value on the line")
	}
	if e.Seq == 0 || e.Type == "" {
		return e, errors.New("not a JSON event: it has no seq or no type")
	}
	return e, nil
}

var (
	byteOrderMark = []byte("\uFEFF")
	carriage      = []byte("\r")
)

// trim takes off what editors and power cuts put around a line, and says what
// that was. What remains is the line as it was written.
func trim(l line) ([]byte, error) {
	var marks []string
	body := l.body
	if l.offset == 0 && bytes.HasPrefix(body, byteOrderMark) {
		body = body[len(byteOrderMark):]
		marks = append(marks, "a byte order mark in front of the event")
	}
	if bytes.HasSuffix(body, carriage) {
		body = bytes.TrimSuffix(body, carriage)
		marks = append(marks, "a CRLF line end, want LF")
	}
	if bare := bytes.Trim(body, "\x00"); len(bare) < len(body) {
		marks = append(marks, fmt.Sprintf("%d NUL bytes around the event", len(body)-len(bare)))
		body = bare
	}
	if marks == nil {
		return body, nil
	}
	return body, errors.New(strings.Join(marks, "; "))
}

// junk reports whether the line cannot be a record that somebody relies on: no
// JSON object stands on it.
func (f finding) junk() bool {
	if f.isEvent {
		return false
	}
	if f.long {
		return !f.ended || f.nuls == f.size-1
	}
	body, _ := trim(f.line)
	var value json.RawMessage
	err := json.NewDecoder(bytes.NewReader(body)).Decode(&value)
	return err != nil || value[0] != '{'
}
