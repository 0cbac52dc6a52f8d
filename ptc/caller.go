package ptc

import (
	"strings"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/runtime"
)

// maxSourceLine is how many characters of a line a person is shown.
const maxSourceLine = 200

// listing is a program's text by lines, for saying which one makes a call.
type listing struct {
	name  string
	lines []string
}

func newListing(p runtime.Program) listing { return listing{p.Name, sourceLines(p.Source)} }

// sourceLines splits where JavaScript ends a line, since the engines count so.
func sourceLines(source string) []string {
	lines := strings.Split(lineEnds.Replace(source), "\n")
	for i, line := range lines {
		lines[i] = shown(line)
	}
	return lines
}

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n")

// caller describes the place in the program that made the call.
func (l listing) caller(c runtime.Call) policy.Caller {
	by := policy.Caller{Kind: policy.Program, Line: c.Line, Column: c.Column, Program: l.name}
	if c.Line >= 1 && c.Line <= len(l.lines) {
		by.Source = l.lines[c.Line-1]
	}
	return by
}

// shown is a line as a person gets to see it.
func shown(line string) string {
	text := []rune(strings.TrimSpace(line))
	if len(text) <= maxSourceLine {
		return string(text)
	}
	return string(text[:maxSourceLine-1]) + "…"
}
