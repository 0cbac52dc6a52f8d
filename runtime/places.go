package runtime

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dop251/goja"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/go-sourcemap/sourcemap"
)

// places leads from positions in what goja compiled back to the author's
// source. Columns count UTF-16 units from 1, as editors and stacks do.
type places struct {
	name      string
	author    string // with the wrapper around it
	generated string // what the transformation made of it; empty without one
	mapping   []byte
	indexed   sync.Once
	consumer  *sourcemap.Consumer
	starts    []int // of the lines of the compiled text
}

// compiledText is the text whose positions goja reports.
func (p *places) compiledText() string {
	if p.generated != "" {
		return p.generated
	}
	return p.author
}

func (p *places) index() {
	p.indexed.Do(func() {
		p.starts = lineStarts(p.compiledText())
		if p.mapping != nil {
			p.consumer, _ = sourcemap.Parse("", p.mapping)
		}
	})
}

// lineStarts splits at the line ends of the language.
func lineStarts(text string) []int {
	starts := []int{0}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n', c == '\r' && !strings.HasPrefix(text[i+1:], "\n"):
			starts = append(starts, i+1)
		case c == 0xE2 && (strings.HasPrefix(text[i:], "\u2028") || strings.HasPrefix(text[i:], "\u2029")):
			starts = append(starts, i+3)
		}
	}
	return starts
}

// source maps a line and a byte column of the compiled text, both from 1, to
// the author's source. Zero stands for a position that is not the author's.
func (p *places) source(line, column int) (int, int) {
	p.index()
	if line < 1 || line > len(p.starts) {
		return 0, 0
	}
	text := p.compiledText()[p.starts[line-1]:]
	units := utf16Length(prefix(text, callee(text, column-1)))
	if p.mapping == nil {
		return p.unwrap(line, units)
	}
	if p.consumer == nil {
		return 0, 0
	}
	_, _, from, units, ok := p.consumer.Source(line, units)
	if !ok {
		return 0, 0
	}
	return p.unwrap(from, units)
}

// callee steps from the bracket of a call, where goja sees it, to the name of
// what is called, where other engines do.
func callee(text string, at int) int {
	if at <= 0 || at >= len(text) || text[at] != '(' {
		return at
	}
	name := at
	for name > 0 && isWord(text[name-1]) {
		name--
	}
	return name
}

// unwrap removes the wrapper from a line, from 1, and a column, from 0.
func (p *places) unwrap(line, units int) (int, int) {
	if line == 1 {
		units = max(units-len(wrapperHead), 0)
	}
	return line, units + 1
}

// added reports whether the transformation added what is at a position.
func (p *places) added(at file.Position) bool {
	if p.mapping == nil {
		return false
	}
	line, _ := p.source(at.Line, at.Column)
	return line == 0
}

func (p *places) line(text string, n int) string {
	for ; n > 1; n-- {
		text = text[lineLength(text):]
		text = strings.TrimPrefix(strings.TrimPrefix(text, "\r"), "\n")
	}
	return text[:lineLength(text)]
}

// prefix returns the first n bytes of s, or all of it.
func prefix(s string, n int) string { return s[:max(0, min(n, len(s)))] }

func utf16Length(s string) int {
	n := utf8.RuneCountInString(s)
	for i := 0; i < len(s); i++ {
		if s[i] >= 0xF0 {
			n++
		}
	}
	return n
}

// syntax turns an error of goja's parser or compiler into a failure.
func (p *places) syntax(err error) *Failure {
	failure := &Failure{Kind: Syntax, Message: err.Error()}
	var position file.Position
	if list := (parser.ErrorList)(nil); errors.As(err, &list) && len(list) > 0 {
		failure.Message, position = list[0].Message, list[0].Position
	}
	if c := (*goja.CompilerSyntaxError)(nil); errors.As(err, &c) {
		failure.Message = c.Message
		if c.File != nil {
			position = c.File.Position(c.Offset)
		}
	}
	failure.Line, failure.Column = p.source(position.Line, position.Column)
	return failure
}

// framePattern matches one line of goja's `stack` property.
var framePattern = regexp.MustCompile(`^\s*at (?:(.*) \()?(.*):(\d+):(\d+)\(\d+\)\)?$`)

// place is one line of a stack in the author's source.
type place struct {
	function     string
	line, column int
}

// frames reads goja's `stack` property, leaving out what is not the author's.
func (p *places) frames(stack string) (frames []place) {
	for line := range strings.Lines(prefix(stack, 64<<10)) {
		m := framePattern.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || m[2] != p.name {
			continue
		}
		row, _ := strconv.Atoi(m[3])
		column, _ := strconv.Atoi(m[4])
		if row, column = p.source(row, column); row != 0 {
			frames = append(frames, place{m[1], row, column})
		}
	}
	return frames
}

// stack writes frames the way Node does.
func (p *places) stack(frames []place) string {
	var b strings.Builder
	for i, f := range frames {
		if i > 0 {
			b.WriteByte('\n')
		}
		at := p.name + ":" + strconv.Itoa(f.line) + ":" + strconv.Itoa(f.column)
		if f.function != "" {
			at = f.function + " (" + at + ")"
		}
		b.WriteString("    at " + at)
	}
	return b.String()
}
