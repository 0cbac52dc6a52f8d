package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxAnswerLine is how long a line of answers may be, in bytes.
const maxAnswerLine = 64 << 10

// answerLines are the lines of one file from a moment on.
type answerLines struct {
	path  string
	read  func([]byte) (int, error) // 0, nil: nothing yet
	rest  []byte
	begun bool // rest starts inside of a line that was begun before the moment
}

// answerTo waits for the answer to q.
func (l *answerLines) answerTo(ctx context.Context, q Question) answer {
	for {
		line, err := l.next(ctx)
		if err != nil {
			return answer{err: err}
		}
		got, err := parseAnswer(line)
		switch {
		case err != nil:
			return answer{err: &FilePairError{l.path, "an answer " + err.Error()}}
		case got.Session == q.Session && got.ID == q.ID:
			return l.outcome(got)
		}
	}
}

func (l *answerLines) outcome(got pairAnswer) answer {
	var outcome Outcome
	if err := outcome.UnmarshalText([]byte(got.Outcome)); err != nil || outcome == Unavailable {
		reason := fmt.Sprintf("the outcome %q: want one of %s, %s, %s", got.Outcome, AllowedOnce, Rejected, Cancelled)
		return answer{err: &FilePairError{l.path, reason}}
	}
	return answer{outcome: outcome, why: got.Why}
}

// next waits for the next complete line.
func (l *answerLines) next(ctx context.Context) ([]byte, error) {
	chunk := make([]byte, 4096)
	for {
		if line, rest, ok := bytes.Cut(l.rest, []byte("\n")); ok && len(line) <= maxAnswerLine {
			l.rest = rest
			if l.begun {
				l.begun = false
				continue
			}
			return line, nil
		}
		if len(l.rest) > maxAnswerLine {
			return nil, &FilePairError{l.path, fmt.Sprintf("a line is longer than %d bytes", maxAnswerLine)}
		}
		n, err := l.read(chunk)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		l.rest = append(l.rest, chunk[:n]...)
		if n > 0 {
			continue
		}
		if err := pause(ctx); err != nil {
			return nil, err
		}
	}
}

// pairAnswer is one line of the answers.
type pairAnswer struct{ Session, ID, Outcome, Why string }

// parseAnswer reads one line. A member that is there twice could be read in two
// ways, so it is refused.
func parseAnswer(line []byte) (a pairAnswer, err error) {
	members, err := membersOf(line)
	if err != nil {
		return a, err
	}
	for _, m := range []struct {
		name   string
		into   *string
		needed bool
	}{{"session", &a.Session, true}, {"id", &a.ID, true}, {"outcome", &a.Outcome, true}, {"why", &a.Why, false}} {
		raw, ok := members[m.name]
		if !ok && !m.needed {
			continue
		}
		if json.Unmarshal(raw, m.into) != nil || *m.into == "" && m.needed {
			return a, fmt.Errorf("has no text as its member %s", m.name)
		}
	}
	return a, nil
}

// membersOf returns the members of the object that line is, by exact name.
func membersOf(line []byte) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("is not a JSON object")
	}
	members := map[string]json.RawMessage{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("is not JSON: %w", err)
		}
		key, _ := name.(string)
		if _, twice := members[key]; twice {
			return nil, fmt.Errorf("has the member %q twice", key)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, fmt.Errorf("is not JSON: %w", err)
		}
		members[key] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("is more than one JSON object")
	}
	return members, nil
}
