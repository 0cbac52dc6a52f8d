package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How foreign text is shown
//
// What a terminal would hide, obey or confuse is replaced by a mark:
//
//	\e \t \r    escape, tab, carriage return
//	\u{202e}    any other character without a shape of its own, or with the
//	            shape of another one
//	\x{ff}      a byte that is not UTF-8
//	\s{500}     so many spaces: eight or more, or at the end of the line
//
// Backslashes in front of a mark, or of text that reads like one, are doubled.
// So the shown form leads back to exactly one text.

// cell is a piece of shown text that is not broken between rows.
type cell struct {
	text string
	mark bool
}

// visible is the shown form of a text, on one line.
func visible(text string) string {
	var b strings.Builder
	for _, c := range cells(text) {
		b.WriteString(c.text)
	}
	return b.String()
}

// cells is the shown form of a text, piece by piece.
func cells(text string) []cell {
	if isPlainASCII(text) {
		return asciiCells(text)
	}
	glyphs := glyphsOf(text)
	disguised := disguises(glyphs)
	var out []cell
	var pile pile
	for i := 0; i < len(glyphs); {
		if n := spacesAt(glyphs[i:]); n > 0 {
			out = append(out, spaceCells(n, i+n == len(glyphs))...)
			pile.end()
			i += n
			continue
		}
		g := glyphs[i]
		switch {
		case disguised[i] || !g.shows() || !pile.take(g.r):
			out = append(out, cell{g.mark(), true})
			pile.end()
		case unicode.IsMark(g.r):
			out[len(out)-1].text += string(g.r)
		default:
			out = append(out, cell{text: string(g.r)})
		}
		i++
	}
	return doubleBackslashes(out)
}

// glyph is a character, or a byte that is none.
type glyph struct {
	r     rune // -1: b is not UTF-8
	wrong byte
}

func glyphsOf(text string) []glyph {
	var all []glyph
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			all = append(all, glyph{-1, text[i]})
		} else {
			all = append(all, glyph{r: r})
		}
		i += size
	}
	return all
}

func (g glyph) mark() string {
	switch g.r {
	case -1:
		return fmt.Sprintf(`\x{%x}`, g.wrong)
	case '\x1b':
		return `\e`
	case '\t':
		return `\t`
	case '\r':
		return `\r`
	default:
		return fmt.Sprintf(`\u{%x}`, g.r)
	}
}

// shows reports whether a terminal shows the character as it is.
func (g glyph) shows() bool {
	return g.r >= 0 && unicode.IsPrint(g.r) && !unicode.In(g.r, shapeless...)
}

// shapeless are characters that count as printable and yet show nothing, or
// change how their neighbours look.
var shapeless = []*unicode.RangeTable{
	unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Me,
	{R16: []unicode.Range16{
		{Lo: 0x0334, Hi: 0x0338, Stride: 1}, // overlays
		{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // the empty Braille pattern
		{Lo: 0xfffc, Hi: 0xfffd, Stride: 1}, // what stands for something else
	}},
}

// pile follows the combining marks on one letter.
type pile struct{ letter, marks int }

// maxMarks is how many combining marks a letter may carry.
const maxMarks = 2

func (p *pile) end() { *p = pile{} }

// take reports whether r can stand where it does: a combining mark needs a
// letter, and not too many marks on it already.
func (p *pile) take(r rune) bool {
	if !unicode.Is(unicode.M, r) {
		*p = pile{}
		if unicode.IsLetter(r) {
			p.letter = 1
		}
		return true
	}
	p.marks++
	return p.letter == 1 && p.marks <= maxMarks
}

func spacesAt(glyphs []glyph) int {
	n := slices.IndexFunc(glyphs, func(g glyph) bool { return g.r != ' ' })
	if n < 0 {
		return len(glyphs)
	}
	return n
}

// countedSpaces is the shortest run of spaces that is shown by its number.
const countedSpaces = 8

func spaceCells(n int, atEnd bool) []cell {
	if n >= countedSpaces || atEnd {
		return []cell{{fmt.Sprintf(`\s{%d}`, n), true}}
	}
	return slices.Repeat([]cell{{text: " "}}, n)
}

// doubleBackslashes keeps text from being taken for a mark.
func doubleBackslashes(cells []cell) []cell {
	for i := 0; i < len(cells); i++ {
		from := i
		for i < len(cells) && cells[i].text == `\` {
			i++
		}
		if i == from || !readsLikeMark(cells[i:]) {
			continue
		}
		for j := from; j < i; j++ {
			cells[j].text = `\\`
		}
	}
	return cells
}

// readsLikeMark reports whether a backslash before the cells would seem to
// begin a mark, or to belong to the mark that they begin with.
func readsLikeMark(cells []cell) bool {
	if len(cells) == 0 {
		return false
	}
	if cells[0].mark {
		return true
	}
	switch cells[0].text[0] {
	case 'e', 't', 'r':
		return true
	case 'u', 'x', 's':
		return len(cells) > 1 && cells[1].text == "{"
	}
	return false
}

// isPlainASCII reports whether a text is its own shown form.
func isPlainASCII(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return !strings.HasSuffix(text, " ") && !strings.Contains(text, strings.Repeat(" ", countedSpaces))
}

func asciiCells(text string) []cell {
	out := make([]cell, len(text))
	for i := range len(text) {
		out[i].text = text[i : i+1]
	}
	return out
}
