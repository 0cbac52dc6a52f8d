package local

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
)

// endMarkers are the lines that tell a model how a command ended: a denial and
// what to do about it, then a signal or an exit code that is not 0.
func endMarkers(e ending, approval policy.Approval) (lines []string) {
	if e.broken != nil {
		return []string{fmt.Sprintf("[the sandbox itself failed, the command did not run: %v]", e.broken)}
	}
	if e.leftovers > 0 {
		lines = append(lines, fmt.Sprintf("[%s outlived the command and %s ended]",
			plural(e.leftovers, "process", "processes"), map[bool]string{true: "was", false: "were"}[e.leftovers == 1]))
	}
	for _, u := range e.confinement.Undone {
		lines = append(lines, fmt.Sprintf("[undone after the command: %s: %s]", shownPath(u.Path), u.What))
	}
	lines = append(lines, denialMarkers(e, approval)...)
	switch {
	case e.signal != "":
		lines = append(lines, "[killed by signal: "+e.signal+"]")
	case e.exitCode != nil && *e.exitCode != 0:
		lines = append(lines, exitMarker(*e.exitCode))
	}
	return lines
}

// denialMarkers say that the sandbox denied something. Beside exit code 0 that
// is a note, and nothing needs to be repeated.
func denialMarkers(e ending, approval policy.Approval) []string {
	c := e.confinement
	if !c.Denied {
		return nil
	}
	if e.exitCode != nil && *e.exitCode == 0 {
		return []string{fmt.Sprintf("[note: the sandbox denied a change of %s; the command succeeded all the same]", shownPath(c.Path))}
	}
	lines := []string{c.Marker()}
	if hint := c.Hint(approval); hint != "" {
		lines = append(lines, hint)
	}
	return lines
}

func exitMarker(code int) string { return fmt.Sprintf("[exit code: %d]", code) }

// insertTimeout puts the line about a timeout before the one about the signal
// or exit code.
func insertTimeout(lines []string, e ending, line string) []string {
	at := len(lines)
	if e.signal != "" || e.exitCode != nil && *e.exitCode != 0 {
		at--
	}
	return slices.Insert(lines, at, line)
}

// failureText is the message of a tool's failure without its code.
func failureText(err error) string {
	if own := (*tools.Error)(nil); errors.As(err, &own) {
		return own.Message
	}
	return err.Error()
}
