package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// sheet lays out rows that no terminal breaks.
type sheet struct {
	columns int
	style   style
	rows    []string
}

// narrowest is the least width that rows are made for.
const narrowest = 24

// newSheet leaves the last column free, where terminals differ.
func newSheet(columns int, style style) *sheet {
	return &sheet{columns: max(columns, narrowest) - 1, style: style}
}

const indent = "    "

// fact adds a sentence of ours. Foreign names in it are in their shown form.
func (s *sheet) fact(text string) {
	row, rest := cutRow(text, s.columns)
	s.rows = append(s.rows, row)
	for rest != "" {
		row, rest = cutRow(rest, s.columns-len(indent))
		s.rows = append(s.rows, indent+row)
	}
}

// cutRow cuts what fits off a text, between two words if it can.
func cutRow(text string, columns int) (row, rest string) {
	used, space := 0, 0
	for i, r := range text {
		if used += width(string(r)); used > columns {
			if space > 0 {
				return text[:space], text[space+1:]
			}
			return text[:i], text[i:]
		}
		if r == ' ' {
			space = i
		}
	}
	return text, ""
}

// longLine is from how many bytes on the size of a single line is said.
const longLine = 80

// blankRun is how many blank lines in a row are shown by their number.
const blankRun = 3

// block adds foreign text behind a gutter.
func (s *sheet) block(label, text string) {
	lines := strings.Split(text, "\n")
	size := ""
	if len(lines) > 1 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
		size = ", with a line end at the end"
	}
	if len(lines) > 1 || len(text) > longLine || size != "" {
		label += fmt.Sprintf(" (%s, %s%s)", count(len(lines), "line"), count(len(text), "byte"), size)
	}
	s.fact(label + ":")
	g := gutter{numbered: len(lines) > 1, width: max(3, len(fmt.Sprint(len(lines))))}
	for i := 0; i < len(lines); {
		if n := blanks(lines[i:]); n >= blankRun {
			s.rows = append(s.rows, g.counted(count(n, "blank line")))
			i += n
			continue
		}
		s.line(g, i+1, lines[i])
		i++
	}
}

func (s *sheet) line(g gutter, number int, line string) {
	for i, row := range s.broken(cells(line), s.columns-len(g.first(number))) {
		if i == 0 {
			s.rows = append(s.rows, g.first(number)+row)
		} else {
			s.rows = append(s.rows, g.next()+row)
		}
	}
}

func blanks(lines []string) int {
	n := 0
	for n < len(lines) && lines[n] == "" {
		n++
	}
	return n
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// gutter is what stands before foreign text.
type gutter struct {
	numbered bool
	width    int
}

func (g gutter) first(number int) string {
	if !g.numbered {
		return fmt.Sprintf("%*s | ", g.width, "")
	}
	return fmt.Sprintf("%*d | ", g.width, number)
}

func (g gutter) next() string { return fmt.Sprintf("%*s : ", g.width, "") }

func (g gutter) counted(what string) string { return fmt.Sprintf("%*s ~ %s", g.width, "", what) }

// broken breaks cells into rows of so many columns, at least one row.
func (s *sheet) broken(cells []cell, columns int) []string {
	var rows []string
	var row strings.Builder
	used, marked := 0, false
	set := func(mark bool) {
		if mark && !marked {
			row.WriteString(s.style.mark)
		} else if !mark && marked {
			row.WriteString(s.style.unmark)
		}
		marked = mark
	}
	for _, c := range cells {
		w := width(c.text)
		if used > 0 && used+w > columns {
			set(false)
			rows = append(rows, row.String())
			row.Reset()
			used = 0
		}
		set(c.mark)
		row.WriteString(c.text)
		used += w
	}
	set(false)
	return append(rows, row.String())
}

// width is the number of columns that a text takes at most. Terminals differ in
// what they give to characters that are not ASCII; none gives more than two.
func width(text string) (n int) {
	for _, r := range text {
		n++
		if r >= utf8.RuneSelf {
			n++
		}
	}
	return n
}
