package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// Pattern names a kind of text that must not be written.
type Pattern struct {
	// Name stands in the mark: letters, digits, '.', '_' and '-'.
	Name string
	// Expr is a regular expression (RE2, the syntax of package regexp) over
	// the decoded text. It must match neither the empty text nor a mark.
	Expr string
}

// Redactor replaces what matches its patterns by the mark [redacted:NAME]. It
// works on the structure of JSON: each string, object key and number is one
// text, decoded, so that escapes hide nothing and the result always parses. In
// a string or key the matches are replaced; a number becomes a string that is
// the mark. If marks and what is left around them match again, the whole text
// becomes a mark. What does not match is written as it would have been without
// a Redactor. Two keys of one object may become the same mark.
//
// It is a net for the log, not a wall. It cannot see
//   - a secret of which only a part stands in one text: cut off by a limit,
//     split over two lines of output or two members of an object;
//   - a secret in another spelling: base64, compressed, or escaped once more,
//     as in JSON that is itself quoted in a string;
//   - what is not written through the log: spill files, the temporary
//     directory, what a tool writes elsewhere;
//   - what was written before [Log.Redact], and the torn line that [Open]
//     sets aside.
//
// Patterns should match secrets only. What a session has to find again after a
// resume, such as call ids and paths, it does not find under a mark; it then
// knows less and asks or reads again.
type Redactor struct{ rules []rule }

type rule struct {
	expr *regexp.Regexp
	mark string
}

// NewRedactor returns a Redactor that applies patterns in their order. With
// none it changes nothing. Its error is a *PatternError for the first pattern
// that cannot be used.
func NewRedactor(patterns []Pattern) (*Redactor, error) {
	r := &Redactor{rules: make([]rule, 0, len(patterns))}
	for i, p := range patterns {
		rule, err := p.rule()
		if err != nil {
			return nil, &PatternError{Name: p.Name, Index: i, Err: err}
		}
		r.rules = append(r.rules, rule)
	}
	for i, p := range patterns {
		for _, other := range r.rules {
			if r.rules[i].expr.MatchString(other.mark) {
				return nil, &PatternError{Name: p.Name, Index: i, Err: fmt.Errorf("%q matches the mark %s; make it narrower", p.Expr, other.mark)}
			}
		}
	}
	return r, nil
}

var markName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func (p Pattern) rule() (rule, error) {
	if !markName.MatchString(p.Name) {
		return rule{}, errors.New("the name must consist of letters, digits, '.', '_' and '-', at least one")
	}
	expr, err := regexp.Compile(p.Expr)
	if err != nil {
		return rule{}, err
	}
	if expr.MatchString("") {
		return rule{}, fmt.Errorf("%q matches the empty text", p.Expr)
	}
	return rule{expr: expr, mark: "[redacted:" + p.Name + "]"}, nil
}

// Redact makes the log write, from now on, the data of every event and every
// blob as r leaves it; nil ends that. Followers and callers of Append get what
// was written, and [Log.Put] returns the name of the redacted blob. A blob that
// is one JSON value is redacted by its structure, any other as one text. What
// was given to Append and Put is not changed.
//
// Never redacted are session/start and the permissions (sandbox/mode,
// approval/policy, permission/preset), without which the session could not be
// resumed, and the names of blobs that the session's folder holds.
func (l *Log) Redact(r *Redactor) { l.redactor.Store(r) }

// plainTypes are the events that are written as they are.
var plainTypes = map[Type]bool{Start: true, SandboxMode: true, SandboxWorktree: true, ApprovalPolicy: true, PermissionPreset: true}

func (l *Log) redactData(t Type, data []byte) []byte {
	r := l.redactor.Load()
	if r == nil || plainTypes[t] {
		return data
	}
	return r.structure(data, l.holds)
}

func (l *Log) redactBlob(data []byte) []byte {
	r := l.redactor.Load()
	if r == nil || len(r.rules) == 0 {
		return data
	}
	if json.Valid(data) {
		return r.structure(data, l.holds)
	}
	if text, changed := r.text(string(data)); changed {
		return []byte(text)
	}
	return data
}

// holds says whether ref names a blob of the session's folder.
func (l *Log) holds(ref Ref) bool { return isStored(l.blobPath(ref), ref) }

// structure redacts raw, which is valid JSON. It does not change raw.
func (r *Redactor) structure(raw []byte, isBlob func(Ref) bool) []byte {
	if len(r.rules) == 0 {
		return raw
	}
	var out []byte
	copied := 0
	for i := 0; i < len(raw); {
		token := nextToken(raw[i:], isBlob)
		if mark, changed := r.token(token); changed {
			out = append(append(out, raw[copied:i]...), mark...)
			copied = i + len(token)
		}
		i += len(token)
	}
	if copied == 0 {
		return raw
	}
	return append(out, raw[copied:]...)
}

// token redacts a string or number of JSON.
func (r *Redactor) token(token []byte) ([]byte, bool) {
	switch {
	case token[0] == '"':
		if text, changed := r.text(unquote(token)); changed {
			return quote(text), true
		}
	case isNumberByte(token[0]):
		for _, rule := range r.rules {
			if rule.expr.Match(token) {
				return quote(rule.mark), true
			}
		}
	}
	return nil, false
}

// text redacts s and says whether that changed it.
func (r *Redactor) text(s string) (string, bool) {
	changed := false
	for _, rule := range r.rules {
		if rule.expr.MatchString(s) {
			s, changed = rule.expr.ReplaceAllLiteralString(s, rule.mark), true
		}
	}
	if !changed {
		return s, false
	}
	for _, rule := range r.rules {
		if rule.expr.MatchString(s) {
			return rule.mark, true
		}
	}
	return s, true
}

// nextToken returns the start of raw that is one string, one number, the name
// of a blob as Ref is encoded, or one byte of something else.
func nextToken(raw []byte, isBlob func(Ref) bool) []byte {
	switch c := raw[0]; {
	case c == '"':
		return raw[:stringLen(raw)]
	case isNumberByte(c):
		return raw[:numberLen(raw)]
	case c == '{':
		return raw[:max(1, refLen(raw, isBlob))]
	}
	return raw[:1]
}

func stringLen(raw []byte) int {
	for i := 1; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

func numberLen(raw []byte) int {
	n := 1
	for n < len(raw) && (isNumberByte(raw[n]) || bytes.IndexByte([]byte(".eE+"), raw[n]) >= 0) {
		n++
	}
	return n
}

func isNumberByte(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

var refText = regexp.MustCompile(`^\{"sha256":"[0-9a-f]{64}","bytes":[0-9]{1,18}\}`)

// refLen returns the length of a blob's name, 0 if raw does not begin with one.
func refLen(raw []byte, isBlob func(Ref) bool) int {
	if !bytes.HasPrefix(raw, []byte(`{"sha256":`)) {
		return 0
	}
	text := refText.Find(raw)
	var ref Ref
	if text == nil || json.Unmarshal(text, &ref) != nil || !isBlob(ref) {
		return 0
	}
	return len(text)
}

// unquote decodes a JSON string.
func unquote(literal []byte) string {
	var s string
	if err := json.Unmarshal(literal, &s); err != nil {
		panic("session: valid JSON holds an invalid string: " + err.Error())
	}
	return s
}
