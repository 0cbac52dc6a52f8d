package sandbox

import (
	"fmt"
	"strings"

	"github.com/dsh-run/dsh/policy"
)

// UnavailableError says that no backend could confine a call, so that nothing
// was run. It is never a statement about the command.
type UnavailableError struct {
	Mode policy.Mode
	// Tried are the backends in the order in which they were tried.
	Tried []Attempt
}

// Attempt says why one backend was not used and what would make it usable.
type Attempt struct {
	Backend string
	Reason  string
	// Err is the cause, where there is one.
	Err error
}

func (e *UnavailableError) Error() string {
	tried := make([]string, len(e.Tried))
	for i, a := range e.Tried {
		tried[i] = a.Backend + ": " + a.Reason
	}
	return fmt.Sprintf("nothing was run: no sandbox can enforce %s here. Tried %s. "+
		"Only danger-full-access, chosen explicitly, runs without a sandbox", e.Mode, strings.Join(tried, "; "))
}

// Unwrap returns the causes that are known.
func (e *UnavailableError) Unwrap() []error {
	var errs []error
	for _, a := range e.Tried {
		if a.Err != nil {
			errs = append(errs, a.Err)
		}
	}
	return errs
}

// CommandError says that a command asks for something that a started process
// must not have. It is an ordinary start error: nothing was run.
type CommandError struct{ Reason string }

func (e *CommandError) Error() string { return "start a command: " + e.Reason }

// setupError is the failure of a backend's own work around a start. The
// command did not run.
type setupError struct {
	what string
	err  error
}

func (e *setupError) Error() string { return fmt.Sprintf("%s: %v", e.what, e.err) }
func (e *setupError) Unwrap() error { return e.err }

// partialError is the refusal of a backend where full enforcement is required.
type partialError struct{ ungoverned []string }

func (e *partialError) Error() string {
	return fmt.Sprintf("full enforcement is required, but these effects would go ungoverned: %s. Drop the requirement or choose a mode that can be enforced in full",
		strings.Join(e.ungoverned, ", "))
}

// ChainError says what is wrong with a [Chain] or its [Runner].
type ChainError struct{ Reason string }

func (e *ChainError) Error() string { return "what may confine calls: " + e.Reason }
