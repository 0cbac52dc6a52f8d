package main

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
)

// logView prints a tree. Its writer keeps the first error.
type logView struct {
	w      *bufio.Writer
	depth  int  // levels that are shown, 0 for all
	failed bool // only what did not go well
}

func (v logView) show(t *logTree) {
	v.write(t.roots, 1)
	fmt.Fprintf(v.w, "%s\n", t.summary())
}

func (v logView) write(nodes []*logNode, level int) {
	for _, n := range nodes {
		if !v.wants(n) {
			continue
		}
		v.w.WriteString(strings.Repeat("  ", level-1))
		v.w.WriteString(n.line())
		folded := v.depth == level
		if hidden := v.count(n.below); folded && hidden > 0 {
			fmt.Fprintf(v.w, " (+%s)", counted(hidden, "line"))
		}
		v.w.WriteByte('\n')
		if !folded {
			v.write(n.below, level+1)
		}
	}
}

// count is how many lines write would print without a limit of depth.
func (v logView) count(nodes []*logNode) int {
	lines := 0
	for _, n := range nodes {
		if v.wants(n) {
			lines += 1 + v.count(n.below)
		}
	}
	return lines
}

// wants reports whether a line is shown.
func (v logView) wants(n *logNode) bool {
	switch {
	case !v.failed, n.kind == aSession, n.kind == aDamage:
		return true
	case n.kind == aQuestion:
		return n.parent == nil || n.parent.how != endOK
	case n.kind == aCall && n.how != endOK:
		return true
	default:
		return slices.ContainsFunc(n.below, v.wants)
	}
}

func (n *logNode) line() string {
	switch {
	case n.end != "":
		return n.text + " → " + n.end
	case n.kind == aCall:
		return n.text + " → no result"
	case n.kind == aQuestion:
		return n.text + " → no answer"
	default:
		return n.text
	}
}

// summary is the last line: what was read and how the calls ended.
func (t *logTree) summary() string {
	calls := 0
	var ends []string
	for how, n := range t.calls {
		if calls += n; n > 0 && logEnd(how) != endOK {
			ends = append(ends, fmt.Sprintf("%d %s", n, logEndWords[how]))
		}
	}
	text := fmt.Sprintf("%s, %s", counted(t.events, "event"), counted(calls, "call"))
	if ends != nil {
		text += ": " + strings.Join(ends, ", ")
	}
	if t.bad > 0 {
		text += "; " + counted(t.bad, "bad line")
	}
	return text
}
