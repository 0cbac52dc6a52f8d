package policy

import (
	"fmt"
	"strings"
)

// Widening is a call's request to run once in a wider mode.
type Widening struct {
	Target        Mode
	Justification string
}

// ArgumentError says that the two widening arguments do not make a request.
type ArgumentError struct{ Reason string }

func (e *ArgumentError) Error() string { return e.Reason }

// ParseWidening reads the arguments sandbox_permissions and justification; nil
// means absent. Both absent is no request: nil, nil.
func ParseWidening(permissions, justification *string) (*Widening, error) {
	switch {
	case permissions == nil && justification == nil:
		return nil, nil
	case permissions == nil:
		return nil, &ArgumentError{"justification is given without sandbox_permissions; they come together or not at all"}
	case justification == nil:
		return nil, &ArgumentError{"sandbox_permissions is given without justification; they come together or not at all"}
	case strings.TrimSpace(*justification) == "":
		return nil, &ArgumentError{"justification is blank; want one sentence for the person who decides"}
	}
	target, err := ParseMode(*permissions)
	if err != nil {
		return nil, &ArgumentError{"sandbox_permissions: " + err.Error()}
	}
	return &Widening{Target: target, Justification: *justification}, nil
}

// Check says why w cannot be asked for by a call that runs in mode.
func (w Widening) Check(mode Mode) error {
	if w.Target > mode {
		return nil
	}
	return &ArgumentError{fmt.Sprintf("sandbox_permissions is %s, but this call already runs in %s; only a wider mode can be asked for", w.Target, mode)}
}
