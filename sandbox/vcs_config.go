package sandbox

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// configEntry is one entry of a file of git's configuration.
type configEntry struct {
	key   configKey
	value string
	// bare: it has no "=", which means true.
	bare bool
	note string // the comment behind it
	// from and to are what it takes in the file, the end of its line included
	// if nothing else is on that line.
	from, to int
}

// configFile is what git reads in a file of its configuration.
type configFile struct {
	text     []byte
	entries  []configEntry
	comments []string
}

// configError says where a file is not what git's configuration looks like.
type configError struct {
	line int
	what string
}

func (e *configError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.what) }

// configReader walks over a file as git does.
type configReader struct {
	text []byte
	at   int
	file *configFile
	// section and sub hold for the entries that follow.
	section, sub  string
	named, nested bool
}

// parseConfig reads a file of git's configuration. It is strict: what git might
// read otherwise than this is an error.
func parseConfig(text []byte) (*configFile, error) {
	r := &configReader{text: text, file: &configFile{text: text}}
	if bytes.ContainsRune(text, 0) {
		return nil, r.fail("a NUL byte")
	}
	if rest, bom := bytes.CutPrefix(text, []byte("\xef\xbb\xbf")); bom {
		r.at = len(text) - len(rest)
	}
	for {
		c, ok := r.next()
		switch {
		case !ok:
			return r.file, nil
		case isSpace(c):
		case c == '#' || c == ';':
			r.comment()
		case c == '[':
			if err := r.header(); err != nil {
				return nil, err
			}
		case isLetter(c):
			if err := r.entry(); err != nil {
				return nil, err
			}
		default:
			return nil, r.fail("%q begins neither a section nor a variable", c)
		}
	}
}

func (r *configReader) fail(format string, args ...any) error {
	return &configError{1 + bytes.Count(r.text[:min(r.at, len(r.text))], []byte("\n")), fmt.Sprintf(format, args...)}
}

// next takes one character; the end of a line is one, in both of its forms.
func (r *configReader) next() (byte, bool) {
	if r.at >= len(r.text) {
		return 0, false
	}
	c := r.text[r.at]
	r.at++
	if c == '\r' && r.at < len(r.text) && r.text[r.at] == '\n' {
		r.at++
		return '\n', true
	}
	return c, true
}

func (r *configReader) peek() byte {
	at := r.at
	c, ok := r.next()
	r.at = at
	if !ok {
		return '\n'
	}
	return c
}

// comment takes the rest of the line, but for its end.
func (r *configReader) comment() {
	from := r.at - 1
	if end := bytes.IndexByte(r.text[r.at:], '\n'); end >= 0 {
		r.at += end
	} else {
		r.at = len(r.text)
	}
	r.file.comments = append(r.file.comments, strings.TrimRight(string(r.text[from:r.at]), "\r"))
}

// header reads from behind "[" to behind "]".
func (r *configReader) header() error {
	var name []byte
	for {
		c, ok := r.next()
		switch {
		case !ok || c == '\n':
			return r.fail("a section without an end")
		case c == ']':
			if len(name) == 0 {
				return r.fail("a section without a name")
			}
			// The old form [section.subsection] is in lower case as a whole.
			r.section, r.sub, r.nested = strings.Cut(string(name), ".")
			r.named = true
			return nil
		case isSpace(c):
			r.section, r.named = string(name), len(name) > 0
			return r.subsection()
		case !isKeyChar(c) && c != '.':
			return r.fail("%q in the name of a section", c)
		}
		name = append(name, lower(c))
	}
}

// subsection reads from behind the space in [section "subsection"].
func (r *configReader) subsection() error {
	c, ok := r.next()
	for ok && c != '\n' && isSpace(c) {
		c, ok = r.next()
	}
	if !ok || c != '"' || !r.named {
		return r.fail("a section that is neither [name] nor [name \"subsection\"]")
	}
	var sub []byte
	for {
		c, ok := r.next()
		if c == '\\' && ok {
			c, ok = r.next()
		} else if c == '"' {
			break
		}
		if !ok || c == '\n' {
			return r.fail("a subsection without an end")
		}
		sub = append(sub, c)
	}
	if c, ok := r.next(); !ok || c != ']' {
		return r.fail("a subsection that goes on behind its end")
	}
	r.sub, r.nested = string(sub), true
	// A section of the old form with a subsection has both.
	if section, more, dotted := strings.Cut(r.section, "."); dotted {
		r.section, r.sub = section, more+"."+r.sub
	}
	return nil
}

// entry reads from behind the first letter of a variable.
func (r *configReader) entry() error {
	from := r.at - 1
	if !r.named {
		return r.fail("a variable before any section")
	}
	for isKeyChar(r.peek()) {
		r.at++
	}
	e := configEntry{key: configKey{r.section, r.sub, r.nested, strings.ToLower(string(r.text[from:r.at]))}, from: from}
	for c := r.peek(); c == ' ' || c == '\t'; c = r.peek() {
		r.at++
	}
	c, ok := r.next()
	switch {
	case !ok || c == '\n':
		e.bare = true
	case c != '=':
		return r.fail("%q behind the variable %s", c, e.key)
	default:
		var err error
		if e.value, e.note, err = r.value(); err != nil {
			return err
		}
	}
	e.from, e.to = r.span(from)
	r.file.entries = append(r.file.entries, e)
	return nil
}

// span is what an entry from there to here takes: whole lines, or, behind
// something else on its line, all but the end of the line.
func (r *configReader) span(from int) (int, int) {
	begin := 1 + bytes.LastIndexByte(r.text[:from], '\n')
	if len(bytes.TrimSpace(r.text[begin:from])) == 0 {
		return begin, r.at
	}
	return from, from + len(bytes.TrimRight(r.text[from:r.at], "\r\n"))
}

// value reads from behind "=" to behind the end of the line.
func (r *configReader) value() (text, note string, err error) {
	var value []byte
	quoted, comment := false, false
	keep := 0 // spaces at the end do not count, unless they are quoted
	begin := r.at
	for {
		c, ok := r.next()
		switch {
		case !ok || c == '\n':
			if quoted {
				return "", "", r.fail("a quoted value without an end")
			}
			return string(value[:keep]), note, nil
		case comment:
			continue
		case isSpace(c) && !quoted:
			if len(value) > 0 {
				value = append(value, c)
			}
			continue
		case !quoted && (c == ';' || c == '#'):
			comment = true
			note = string(r.text[r.at-1 : r.lineEnd()])
			continue
		case c == '"':
			quoted = !quoted
			keep = max(keep, len(value))
			continue
		case c == '\\':
			escaped, goesOn, err := r.escape()
			if err != nil {
				return "", "", err
			}
			if goesOn {
				continue
			}
			c = escaped
		}
		value = append(value, c)
		keep = len(value)
		if r.at-begin > maxConfig {
			return "", "", r.fail("a value that is too long")
		}
	}
}

func (r *configReader) lineEnd() int {
	if end := bytes.IndexByte(r.text[r.at:], '\n'); end >= 0 {
		return r.at + end
	}
	return len(r.text)
}

// escape reads behind "\": a character, or the end of a line that goes on.
func (r *configReader) escape() (c byte, goesOn bool, err error) {
	c, ok := r.next()
	switch {
	case !ok:
		return 0, false, r.fail("a backslash at the end")
	case c == '\n':
		return 0, true, nil
	case c == 't':
		return '\t', false, nil
	case c == 'b':
		return '\b', false, nil
	case c == 'n':
		return '\n', false, nil
	case c == '\\' || c == '"':
		return c, false, nil
	}
	return 0, false, r.fail("\\%c, which is no escape", c)
}

func isSpace(c byte) bool   { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
func isLetter(c byte) bool  { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isKeyChar(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' || c == '-' }

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// revertConfig returns what a file should hold: as it is after a run, but with
// the entries that execute as they were before it, and the keys concerned.
// Other bytes stay as they are. nil keys mean that nothing is to be done.
func revertConfig(before, after *configFile) (text []byte, keys []configKey) {
	for _, e := range slices.Concat(before.entries, after.entries) {
		if executes(e.key, e.value) && !slices.Contains(keys, e.key) && !slices.Equal(before.values(e.key), after.values(e.key)) {
			keys = append(keys, e.key)
		}
	}
	if keys == nil {
		return nil, nil
	}
	changed := func(e configEntry) bool { return slices.Contains(keys, e.key) }
	at := 0
	for _, e := range after.entries {
		if changed(e) {
			text = append(text, after.text[at:e.from]...)
			at = e.to
		}
	}
	text = append(text, after.text[at:]...)
	for _, e := range before.entries {
		if changed(e) {
			text = appendEntry(text, e)
		}
	}
	// Where that says the same as before, it is as before.
	if now, err := parseConfig(text); err == nil && now.says(before) {
		return before.text, keys
	}
	return text, keys
}

// configValue is what an entry says besides its key.
type configValue struct {
	value string
	bare  bool
}

func (f *configFile) values(key configKey) (values []configValue) {
	for _, e := range f.entries {
		if e.key == key {
			values = append(values, configValue{e.value, e.bare})
		}
	}
	return values
}

// says reports whether two files say the same, comments included, whatever
// the order of sections that repeat.
func (f *configFile) says(other *configFile) bool {
	if len(f.entries) != len(other.entries) || !slices.Equal(f.comments, other.comments) {
		return false
	}
	for _, e := range f.entries {
		if !slices.Equal(f.values(e.key), other.values(e.key)) || !slices.Equal(f.notes(e.key), other.notes(e.key)) {
			return false
		}
	}
	return true
}

// notes are the comments behind the entries of a key that does not execute;
// those behind one that does go with it.
func (f *configFile) notes(key configKey) (notes []string) {
	for _, e := range f.entries {
		if e.key == key && !executes(key, e.value) {
			notes = append(notes, e.note)
		}
	}
	return notes
}

// appendEntry adds an entry with a section of its own.
func appendEntry(text []byte, e configEntry) []byte {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	header := "[" + e.key.section
	if e.key.nested {
		header += ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(e.key.sub) + `"`
	}
	line := "\t" + e.key.name
	if !e.bare {
		line += ` = "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`).Replace(e.value) + `"`
	}
	return append(text, header+"]\n"+line+"\n"...)
}
