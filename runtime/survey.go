package runtime

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxBrackets bounds the nesting of the source. Parsers recurse on brackets,
// and nothing recovers from a Go stack that overflows.
const maxBrackets = 1000

// findings are what a quick look at the tokens of a source shows.
type findings struct {
	tooDeep       int   // 1 + offset of the bracket that nests too deeply
	exports       []int // offsets of `export` at the start of a top-level statement
	imports       []int // the same of `import`
	typeArguments bool  // f<T>(x), which also parses as JavaScript, with another meaning
	stray         int   // 1 + offset of the first bracket that closes nothing
	unclosed      int   // 1 + offset of the last bracket that nothing closes
}

// surveyor is a small lexer: it knows strings, comments, templates and regular
// expressions, so that it does not count brackets in them.
type surveyor struct {
	text      string
	pos       int
	open      []byte // brackets; 't' is the ${ of a template
	offsets   []int  // of open
	operand   bool   // the last token ends an operand: a slash divides
	statement bool   // the next token may start a statement
	found     findings
}

func survey(text string) findings {
	s := &surveyor{text: text, statement: true}
	for s.pos < len(text) && s.found.tooDeep == 0 {
		s.token()
	}
	if last := len(s.offsets) - 1; last >= 0 {
		s.found.unclosed = s.offsets[last]
	}
	return s.found
}

func (s *surveyor) token() {
	c := s.text[s.pos]
	switch {
	case c == '\n':
		s.statement = true
		s.pos++
	case c == ' ' || c == '\t' || c == '\r':
		s.pos++
	case c == '/':
		s.slash()
	case c == '"' || c == '\'':
		s.text1(c)
	case c == '`':
		s.pos++
		s.template()
	case strings.IndexByte("([{", c) >= 0:
		s.opening(c)
	case strings.IndexByte(")]}", c) >= 0:
		s.closing(c)
	case isWord(c):
		s.word()
	default:
		s.operand, s.statement = false, c == ';'
		s.pos++
	}
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= utf8.RuneSelf || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

func (s *surveyor) opening(c byte) {
	s.pos++
	s.open, s.offsets = append(s.open, c), append(s.offsets, s.pos)
	s.operand, s.statement = false, false
	if len(s.open) > maxBrackets {
		s.found.tooDeep = s.pos
	}
}

func (s *surveyor) closing(c byte) {
	s.pos++
	s.operand, s.statement = true, c == '}'
	top := len(s.open) - 1
	if top < 0 {
		if s.found.stray == 0 {
			s.found.stray = s.pos
		}
		return
	}
	last := s.open[top]
	s.open, s.offsets = s.open[:top], s.offsets[:top]
	if last == 't' && c == '}' {
		s.template()
	}
}

// slash skips a comment or a regular expression, or steps over a division.
func (s *surveyor) slash() {
	rest := s.text[s.pos:]
	switch {
	case strings.HasPrefix(rest, "//"):
		s.pos += lineLength(rest)
	case strings.HasPrefix(rest, "/*"):
		end := strings.Index(rest[2:], "*/")
		if end < 0 {
			s.pos = len(s.text)
			return
		}
		s.pos += end + 4
	case s.operand:
		s.operand = false
		s.pos++
	default:
		s.regexp()
	}
}

func lineLength(text string) int {
	if end := strings.IndexAny(text, "\n\r"); end >= 0 {
		return end
	}
	return len(text)
}

func (s *surveyor) regexp() {
	class := false
	for s.pos++; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == '\n':
			return
		case c == '\\':
			s.pos++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			s.pos++
			s.operand, s.statement = true, false
			return
		}
	}
}

func (s *surveyor) text1(quote byte) {
	for s.pos++; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; c {
		case '\\':
			s.pos++
		case '\n':
			return
		case quote:
			s.pos++
			s.operand, s.statement = true, false
			return
		}
	}
}

// template skips the literal part of a template up to its end or to a ${.
func (s *surveyor) template() {
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == '\\':
			s.pos++
		case c == '`':
			s.pos++
			s.operand, s.statement = true, false
			return
		case c == '$' && strings.HasPrefix(s.text[s.pos:], "${"):
			s.pos++
			s.opening('t')
			return
		}
	}
}

// beforeRegexp are the words after which a slash starts a regular expression.
var beforeRegexp = map[string]bool{
	"return": true, "typeof": true, "case": true, "in": true, "of": true, "delete": true, "void": true, "throw": true,
	"new": true, "else": true, "do": true, "await": true, "yield": true, "instanceof": true,
}

func (s *surveyor) word() {
	from := s.pos
	for s.pos < len(s.text) && isWord(s.text[s.pos]) {
		s.pos++
	}
	word := s.text[from:s.pos]
	if s.statement && len(s.open) == 0 {
		switch word {
		case "export":
			s.found.exports = append(s.found.exports, from)
		case "import":
			s.found.imports = append(s.found.imports, from)
		}
	}
	s.operand, s.statement = !beforeRegexp[word], false
	if s.pos < len(s.text) && s.text[s.pos] == '<' && typeArguments(s.text[s.pos:]) {
		s.found.typeArguments = true
	}
}

// typeArguments reports whether text starts with <…>( where … looks like types.
func typeArguments(text string) bool {
	depth := 0
	for i := range min(len(text), 500) {
		switch c := text[i]; {
		case c == '<':
			depth++
		case c == '>':
			if depth--; depth == 0 {
				return i > 1 && i+1 < len(text) && (text[i+1] == '(' || text[i+1] == '`')
			}
		case !isWord(c) && strings.IndexByte(" \t\n,.|&[]{}:;\"'?", c) < 0:
			return false
		}
	}
	return false
}

// withoutExports blanks the word export, keeping every column, and turns
// `export default` into a variable that tail then calls or returns.
func (f *findings) withoutExports(text string) (body, tail string) {
	const export, exportDefault = "export", "export default"
	for _, at := range f.exports {
		replacement := strings.Repeat(" ", len(export))
		if strings.HasPrefix(text[at:], exportDefault+" ") || strings.HasPrefix(text[at:], exportDefault+"(") {
			variable := unused(text)
			replacement = "var " + variable + " ="
			tail = "\n;return typeof " + variable + "==='function'?" + variable + "():" + variable
		}
		text = text[:at] + replacement + text[at+len(replacement):]
	}
	return text, tail
}

// unused returns a name of eight characters that text does not contain, so
// that `var name =` is as long as `export default`.
func unused(text string) string {
	name := []byte("_default")
	for c := byte('a'); strings.Contains(text, string(name)); c++ {
		name[1] = c
	}
	return string(name)
}

// explain says more than the parsers can where the cause is well known: they
// see the wrapper around the text, and would speak of it.
func (f *findings) explain(text string, failure *Failure) *Failure {
	for _, at := range f.imports {
		if line, column := lineColumn(text, at+1); line == failure.Line {
			failure.Column = column
			failure.Message = "modules cannot be imported: everything a program may use is a global"
			return failure
		}
	}
	endLine, endColumn := lineColumn(text, len(text)+1)
	switch atEnd := failure.Line > endLine || failure.Line == endLine && failure.Column >= endColumn; {
	case f.stray != 0:
		failure.Line, failure.Column = lineColumn(text, f.stray)
		failure.Message = "unexpected " + text[f.stray-1:f.stray] + ": it closes what nothing opened"
	case atEnd && f.unclosed != 0:
		line, _ := lineColumn(text, f.unclosed)
		failure.Line, failure.Column = endLine, endColumn
		failure.Message = fmt.Sprintf("unexpected end of the source: the %s of line %d is never closed", text[f.unclosed-1:f.unclosed], line)
	case atEnd:
		failure.Line, failure.Column = endLine, endColumn
		failure.Message = "unexpected end of the source"
	}
	return failure
}

// lineColumn returns the position of the byte before offset end, from 1.
func lineColumn(text string, end int) (line, column int) {
	before := text[:end-1]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf16Length(before[start:]) + 1
}
