package local

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// furthest is the column that an escape sequence can move to at most, so that
// a few bytes cannot become a long text.
const furthest = 400

// screenText is what a terminal would show of a text: carriage returns and
// backspaces move back, what is written then replaces what was there, and
// escape sequences are gone. A line ending of two characters stays one.
// Movements between lines are not followed.
func screenText(s string) string {
	if !strings.ContainsFunc(s, isControl) {
		return s
	}
	var b strings.Builder
	for s != "" {
		line, rest, terminated := strings.Cut(s, "\n")
		plain := strings.TrimRight(line, "\r")
		b.WriteString(screenLine(plain))
		if terminated {
			if plain != line {
				b.WriteByte('\r')
			}
			b.WriteByte('\n')
		}
		s = rest
	}
	return b.String()
}

// isControl reports whether a terminal does something else with r than showing
// it or ending the line.
func isControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0
}

// screenLine renders one line.
func screenLine(line string) string {
	if !strings.ContainsFunc(line, isControl) {
		return line
	}
	var c cells
	for line != "" {
		r, size := utf8.DecodeRuneInString(line)
		if introduces(r) {
			seq := sequenceOf(line)
			c.move(seq)
			line = line[seq.size:]
			continue
		}
		c.put(r)
		line = line[size:]
	}
	return string(c.runes)
}

// cells are the characters of a line under construction.
type cells struct {
	runes []rune
	at    int
}

func (c *cells) put(r rune) {
	switch {
	case r == '\r':
		c.at = 0
		return
	case r == '\b':
		c.at = max(c.at-1, 0)
		return
	case r == 0:
		r = utf8.RuneError
	case isControl(r):
		return
	}
	for len(c.runes) <= c.at {
		c.runes = append(c.runes, ' ')
	}
	c.runes[c.at] = r
	c.at++
}

// move applies a sequence that moves within the line or erases in it.
func (c *cells) move(s sequence) {
	n := s.number()
	switch s.final {
	case 'C':
		c.at += min(max(n, 1), max(furthest-c.at, 0))
	case 'D':
		c.at = max(c.at-max(n, 1), 0)
	case 'G':
		c.at = min(max(n, 1)-1, max(furthest, len(c.runes)))
	case 'K', 'J':
		c.erase(n)
	}
}

func (c *cells) erase(how int) {
	switch how {
	case 0:
		c.runes = c.runes[:min(c.at, len(c.runes))]
	case 1:
		for i := range min(c.at+1, len(c.runes)) {
			c.runes[i] = ' '
		}
	default:
		c.runes = c.runes[:0]
	}
}

// sequence is one escape sequence.
type sequence struct {
	size   int
	params string
	final  byte // of a control sequence; 0 for others and for a torn one
}

func (s sequence) number() int {
	n, _ := strconv.Atoi(s.params)
	return max(n, 0)
}

const (
	escape = '\x1b'
	// The control characters of one code point, and what follows escape for
	// the same.
	controlSequence = '\u009b' // [
	systemCommand   = '\u009d' // ]
	deviceControl   = '\u0090' // P
	startOfString   = '\u0098' // X
	privacyMessage  = '\u009e' // ^
	programCommand  = '\u009f' // _
	terminator      = '\u009c' // \
)

func introduces(r rune) bool {
	switch r {
	case escape, controlSequence, systemCommand, deviceControl, startOfString, privacyMessage, programCommand:
		return true
	}
	return false
}

// sequenceOf reads the sequence at the start of a line.
func sequenceOf(line string) sequence {
	kind, size := utf8.DecodeRuneInString(line)
	if kind == escape {
		if len(line) == 1 {
			return sequence{size: 1}
		}
		// '@' to '_' behind escape stand for the control characters.
		if kind = rune(line[1]); kind >= '@' && kind <= '_' {
			kind, size = kind-'@'+0x80, 2
		}
	}
	switch kind {
	case controlSequence:
		return controlSequenceOf(line, size)
	case systemCommand, deviceControl, startOfString, privacyMessage, programCommand:
		return sequence{size: size + stringEnd(line[size:])}
	}
	if size == 2 {
		return sequence{size: 2}
	}
	return sequence{size: shortEnd(line)}
}

func controlSequenceOf(line string, start int) sequence {
	at := start
	for at < len(line) && line[at] >= 0x20 && line[at] < 0x40 {
		at++
	}
	s := sequence{size: at, params: line[start:at]}
	if at < len(line) && line[at] >= 0x40 && line[at] < 0x7f {
		s.size, s.final = at+1, line[at]
	}
	return s
}

// stringEnd is the length of a control string with its terminator; without one
// it takes the rest of the line.
func stringEnd(s string) int {
	for i, r := range s {
		switch {
		case r == '\a':
			return i + 1
		case r == terminator:
			return i + utf8.RuneLen(terminator)
		case r == escape && strings.HasPrefix(s[i+1:], `\`):
			return i + 2
		case r == escape:
			return i
		}
	}
	return len(s)
}

// shortEnd is the length of an escape sequence that is no control sequence:
// intermediates and one final character.
func shortEnd(line string) int {
	at := 1
	for at < len(line) && line[at] >= 0x20 && line[at] < 0x30 {
		at++
	}
	if at < len(line) && line[at] >= 0x30 && line[at] < 0x7f {
		at++
	}
	return at
}
