package policy

import (
	"fmt"
	"strings"

	"github.com/dsh-run/dsh/session"
)

// FixedError says that a sub-session's scope was to be changed.
type FixedError struct{ Session string }

func (e *FixedError) Error() string {
	return fmt.Sprintf("the scope of sub-session %s is fixed; start another one with the scope that is wanted", e.Session)
}

// PresetWriteError says that a preset was chosen only in part, because the log
// could not be written. What was written is in effect.
type PresetWriteError struct {
	Preset  string
	Written []session.Type // in this order
	Failed  session.Type
	Err     error
}

func (e *PresetWriteError) Error() string {
	written := "nothing"
	if len(e.Written) > 0 {
		words := make([]string, len(e.Written))
		for i, t := range e.Written {
			words[i] = string(t)
		}
		written = strings.Join(words, " and ")
	}
	return fmt.Sprintf("preset %s: %s could not be written, %s was: %v", e.Preset, e.Failed, written, e.Err)
}

func (e *PresetWriteError) Unwrap() error { return e.Err }

// SetMode changes the sandbox mode. by says who did it. Nothing is written when
// it is that mode already. Errors: *WordError, *FixedError, those of
// Options.Admit and of the log.
func (s *Session) SetMode(mode Mode, by string) error {
	if err := checkMode(mode); err != nil {
		return err
	}
	return s.set(func(now State) error {
		if now.Mode == mode {
			return nil
		}
		if err := s.admits(mode); err != nil {
			return err
		}
		return s.write(session.SandboxMode, mode, by)
	})
}

// SetApproval changes the approval policy. by says who did it. Nothing is
// written when it is that policy already. Errors: *WordError, *FixedError,
// those of the log.
func (s *Session) SetApproval(approval Approval, by string) error {
	if err := checkApproval(approval); err != nil {
		return err
	}
	return s.set(func(now State) error {
		if now.Approval == approval {
			return nil
		}
		return s.write(session.ApprovalPolicy, approval, by)
	})
}

// SetPreset chooses a preset: it writes the knobs that change, and the name. No
// other setter comes between. Errors: *WordError, *FixedError,
// *PresetWriteError, those of Options.Admit.
func (s *Session) SetPreset(name, by string) error {
	p, err := s.presets.Parse(name)
	if err != nil {
		return err
	}
	return s.set(func(now State) error { return s.writePreset(p, now, by) })
}

func (s *Session) writePreset(p Preset, now State, by string) error {
	if p.Mode != now.Mode {
		if err := s.admits(p.Mode); err != nil {
			return err
		}
	}
	var written []session.Type
	for _, step := range []struct {
		event  session.Type
		value  any
		needed bool
	}{
		{session.SandboxMode, p.Mode, p.Mode != now.Mode},
		{session.ApprovalPolicy, p.Approval, p.Approval != now.Approval},
		{session.PermissionPreset, p.Name, true},
	} {
		if !step.needed {
			continue
		}
		if err := s.write(step.event, step.value, by); err != nil {
			return &PresetWriteError{p.Name, written, step.event, err}
		}
		written = append(written, step.event)
	}
	return nil
}

// set runs one setter, alone, where the scope may change at all.
func (s *Session) set(change func(now State) error) error {
	s.setting.Lock()
	defer s.setting.Unlock()
	now := s.State()
	if now.Fixed {
		return &FixedError{s.log.ID()}
	}
	return change(now)
}

func (s *Session) write(t session.Type, value any, by string) error {
	_, err := s.log.Append(t, setting[any]{Value: value, By: by})
	return err
}

func checkMode(m Mode) error {
	_, err := m.MarshalText()
	return err
}

func checkApproval(a Approval) error {
	_, err := a.MarshalText()
	return err
}
