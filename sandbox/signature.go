package sandbox

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// signature is how a runner that has no other channel says that it failed
// before the command ran: with one of its exit codes, and with nothing on
// stderr but such lines and lines of information. A command that prints such a
// line prints others too, or exits otherwise; what cannot be told apart even
// so is taken for the runner's, since then nothing must be retried.
type signature struct {
	exits []int
	line  *regexp.Regexp
	// callers are lines about a command that nothing could have started.
	callers *regexp.Regexp
	info    []string // whole lines that mean nothing
}

var (
	// bwrapComplaint is how bubblewrap begins its own lines.
	bwrapComplaint = regexp.MustCompile(`^bwrap: `)
	// bwrapStartError is how it tells of a directory or a program that cannot
	// be used.
	bwrapStartError = regexp.MustCompile(`^bwrap: (execvp |Can't chdir to )`)
)

// failure returns the runner's words if it failed.
func (s signature) failure(stderr []byte, exit int, sig syscall.Signal) error {
	if sig != 0 || s.line == nil || !slices.Contains(s.exits, exit) {
		return nil
	}
	var words []string
	for line := range strings.Lines(string(stderr)) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case line == "" || slices.Contains(s.info, line):
		case s.callers != nil && s.callers.MatchString(line):
			return nil
		case s.line.MatchString(line):
			words = append(words, line)
		default:
			return nil
		}
	}
	if words == nil {
		return nil
	}
	return errors.New(strings.Join(words, "; "))
}
