package tools

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
)

// Repaired lists the calls that a log had left open and how they were closed,
// in that order: the calls of a program before the program's own.
type Repaired []Repair

// Repair is how one call was closed.
type Repair struct {
	CallID string
	Tool   string
	// Error has the code TOOL_NOT_STARTED, for a call that has changed nothing,
	// or TOOL_OUTCOME_UNKNOWN.
	Error Error
}

// ResumeSession is NewSession for a session whose log was opened again. Calls
// that have no result there, because the process died or the disk was full,
// get one: it says whether the call can be repeated. Each is appended to the
// log; resuming once more repairs nothing. An error is one of the log, and then
// Repaired are those that were closed before it.
func ResumeSession(permissions *policy.Session) (*Session, Repaired, error) {
	s, r, err := fold(permissions)
	if err != nil {
		return nil, nil, err
	}
	done, err := r.repair(permissions.Log())
	if err != nil {
		return nil, done, fmt.Errorf("close the calls that session %s left open: %w", permissions.Log().ID(), err)
	}
	return s, done, nil
}

// repair closes the open calls, the last one first, so that a call is closed
// before its parent.
func (r *replay) repair(log *session.Log) (done Repaired, err error) {
	calls := slices.SortedFunc(maps.Values(r.open), func(a, b *openCall) int { return cmp.Compare(b.number, a.number) })
	for _, call := range calls {
		failure := call.outcome()
		result := Result{Meta: Meta{CallID: call.CallID, Started: failure.Code == ToolOutcomeUnknown}}
		result.fail(failure)
		event, err := newResultEvent(log, result)
		if err != nil {
			return done, err
		}
		if _, err := log.Append(session.ToolResult, event); err != nil {
			return done, err
		}
		done = append(done, Repair{CallID: call.CallID, Tool: call.Tool, Error: *failure})
	}
	if done == nil {
		return nil, nil
	}
	return done, log.Sync()
}

// outcome is what the log tells about a call that it left open.
func (c *openCall) outcome() *Error {
	switch {
	case len(c.below) > 0:
		return &Error{Code: ToolOutcomeUnknown, Message: fmt.Sprintf(
			"the session ended while this call ran; of the calls it made, these had started: %s. Check what they changed before repeating it", listed(c.below))}
	case c.program:
		return &Error{Code: ToolOutcomeUnknown, Message: "the session ended while this program ran; none of its calls that may change something had started. Check before repeating it"}
	case c.started:
		return &Error{Code: ToolOutcomeUnknown, Message: "the session ended while this call ran, and nothing tells how far it came; check what it changed before repeating it"}
	default:
		return &Error{Code: ToolNotStarted, Message: "the session ended before this call changed anything: it had not started, or its tool changes nothing; it is safe to repeat"}
	}
}

// maxListed is how many calls a message names.
const maxListed = 8

func listed(calls []string) string {
	if more := len(calls) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(calls[:maxListed], ", "), more)
	}
	return strings.Join(calls, ", ")
}
