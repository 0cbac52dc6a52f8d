package local

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dsh-run/dsh/tools"
)

// matcher finds the lines that a pattern matches.
type matcher struct {
	line  *regexp.Regexp // for one line without its end
	block *regexp.Regexp // for many; nil where lines must be looked at one by one
	// lineEnds: the pattern says where a line ends, which block sees only
	// where that is LF alone.
	lineEnds bool
	// required are texts of which each matching line holds one; none: unknown.
	required [][]byte
	// folded: required are in lower case, for a text in lower case.
	folded bool
	// exact: a line matches where it holds the one required text.
	exact bool
}

func newMatcher(pattern string, literal, ignoreCase bool) (*matcher, error) {
	expression := pattern
	if literal {
		expression = regexp.QuoteMeta(pattern)
	}
	if ignoreCase {
		expression = "(?i)" + expression
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, patternError(pattern, err)
	}
	m := &matcher{}
	if m.line, err = regexp.Compile(expression); err != nil {
		return nil, patternError(pattern, err)
	}
	if err := m.forBlocks(expression); err != nil {
		return nil, err
	}
	tree = tree.Simplify()
	m.required, m.folded = required(tree)
	m.exact = tree.Op == syntax.OpLiteral && len(m.required) == 1 && !m.folded
	return m, nil
}

// forBlocks prepares the search of many lines at once, in which ^ and $ stand
// at lines.
func (m *matcher) forBlocks(expression string) error {
	tree, err := syntax.Parse(expression, syntax.Perl&^syntax.OneLine)
	if err != nil {
		return patternError(expression, err)
	}
	if contains(tree, func(re *syntax.Regexp) bool { return re.Op == syntax.OpLiteral && slices.Contains(re.Rune, '\n') }) {
		return fail(tools.InvalidArgs, "the pattern holds a line break, but is compared with one line at a time")
	}
	m.lineEnds = contains(tree, func(re *syntax.Regexp) bool { return re.Op == syntax.OpEndLine })
	if !contains(tree, func(re *syntax.Regexp) bool { return re.Op == syntax.OpBeginText || re.Op == syntax.OpEndText }) {
		m.block = regexp.MustCompile("(?m:" + expression + ")")
	}
	return nil
}

func contains(re *syntax.Regexp, is func(*syntax.Regexp) bool) bool {
	return is(re) || slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return contains(sub, is) })
}

// maxRequired bounds the texts that are looked for one after another.
const maxRequired = 12

// required returns texts of which each match holds one.
func required(re *syntax.Regexp) (texts [][]byte, folded bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return requiredLiteral(re)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if more, f := required(sub); shortest(more) > shortest(texts) {
				texts, folded = more, f
			}
		}
	case syntax.OpAlternate:
		return requiredOfEach(re.Sub)
	}
	return texts, folded
}

func requiredLiteral(re *syntax.Regexp) ([][]byte, bool) {
	text := string(re.Rune)
	if !utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError) {
		return nil, false
	}
	if re.Flags&syntax.FoldCase == 0 {
		return [][]byte{[]byte(text)}, false
	}
	if !isASCII(text) {
		return nil, false
	}
	return [][]byte{[]byte(strings.ToLower(text))}, true
}

func requiredOfEach(alternatives []*syntax.Regexp) (texts [][]byte, folded bool) {
	for i, sub := range alternatives {
		more, f := required(sub)
		if len(more) == 0 || i > 0 && f != folded || len(texts)+len(more) > maxRequired {
			return nil, false
		}
		texts, folded = append(texts, more...), f
	}
	return texts, folded
}

func shortest(texts [][]byte) int {
	n := 0
	for i, t := range texts {
		if i == 0 || len(t) < n {
			n = len(t)
		}
	}
	return n
}

// patternError says what of a pattern is not understood here.
func patternError(pattern string, err error) error {
	var s *syntax.Error
	if !errors.As(err, &s) {
		return fail(tools.InvalidArgs, "pattern: %v", err)
	}
	part := s.Expr
	what, hint := string(s.Code), `to search for the characters themselves, set mode to "literal"`
	for _, u := range []struct{ start, what, hint string }{
		{"(?=", "look-ahead", "match the longer text, or search twice"},
		{"(?!", "negative look-ahead", "search for the rest and sort out the lines, or search twice"},
		{"(?<=", "look-behind", "match the longer text"},
		{"(?<!", "negative look-behind", "search for the rest and sort out the lines"},
		{"(?>", "atomic groups", "use a plain group"},
		{"(?P=", "back-references", "spell out the alternatives"},
		{`\k`, "back-references", "spell out the alternatives"},
	} {
		if strings.HasPrefix(part, u.start) {
			what, hint = u.what+", which RE2 does not have", u.hint
		}
	}
	switch {
	case len(part) == 2 && part[0] == '\\' && part[1] >= '1' && part[1] <= '9':
		what, hint = "a back-reference, which RE2 does not have", "spell out the alternatives"
	case s.Code == syntax.ErrInvalidRepeatSize:
		what = "a repeat count over 1000, or one that runs backwards"
	case s.Code == syntax.ErrInvalidRepeatOp:
		what = "a repetition of a repetition; RE2 has no possessive form"
	}
	return failWith(tools.InvalidArgs, map[string]any{"part": part},
		"pattern not supported: %s: %q; the syntax is RE2. Hint: %s", what, part, hint)
}

// lower writes text with its ASCII letters in lower case to buf. ok is false
// where other characters fold to ASCII letters.
func lower(buf, text []byte) (lowered []byte, ok bool) {
	if bytes.Contains(text, []byte("\u212a")) || bytes.Contains(text, []byte("\u017f")) {
		return buf, false
	}
	buf = append(buf[:0], text...)
	for i, c := range buf {
		if 'A' <= c && c <= 'Z' {
			buf[i] = c + 'a' - 'A'
		}
	}
	return buf, true
}

// lineIn is a line of a block that matches, without its end.
type lineIn struct {
	start, end int
	match      []int // within the line
}

// scan calls found for each line of the block that matches, in order, until it
// returns false. buf is scratch space that it returns.
func (m *matcher) scan(block, buf []byte, found func(lineIn) bool) []byte {
	next := m.candidates(block, &buf)
	for at := 0; at < len(block); {
		i := next(at)
		if i < 0 {
			break
		}
		start := at + bytes.LastIndexByte(block[at:i], '\n') + 1
		text := block[start:]
		if j := bytes.IndexByte(block[i:], '\n'); j >= 0 {
			text = bytes.TrimSuffix(block[start:i+j], []byte{'\r'})
			at = i + j + 1
		} else {
			at = len(block)
		}
		match := m.in(text)
		if match != nil && !found(lineIn{start, start + len(text), match}) {
			break
		}
	}
	return buf
}

func (m *matcher) in(line []byte) []int {
	if !m.exact {
		return m.line.FindIndex(line)
	}
	i := bytes.Index(line, m.required[0])
	if i < 0 {
		return nil
	}
	return []int{i, i + len(m.required[0])}
}

// candidates returns a function that gives a position in the first line from
// at on that may match, or -1.
func (m *matcher) candidates(block []byte, buf *[]byte) func(at int) int {
	text, ok := block, true
	if m.folded {
		*buf, ok = lower(*buf, block)
		text = *buf
	}
	switch {
	case shortest(m.required) > 0 && ok:
		return nearest(text, m.required)
	case m.block == nil || m.lineEnds && bytes.Contains(block, crlf):
		return func(at int) int { return at }
	}
	return func(at int) int {
		loc := m.block.FindIndex(block[at:])
		if loc == nil {
			return -1
		}
		return min(at+loc[0], len(block)-1)
	}
}

// nearest finds the first of the texts, and remembers where the others are.
func nearest(text []byte, texts [][]byte) func(at int) int {
	known := make([]int, len(texts))
	for i := range known {
		known[i] = -1
	}
	return func(at int) int {
		best := -1
		for i, t := range texts {
			if known[i] < at {
				if j := bytes.Index(text[at:], t); j >= 0 {
					known[i] = at + j
				} else {
					known[i] = len(text)
				}
			}
			if known[i] < len(text) && (best < 0 || known[i] < best) {
				best = known[i]
			}
		}
		return best
	}
}
