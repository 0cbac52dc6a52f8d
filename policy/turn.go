package policy

import (
	"errors"

	"github.com/dsh-run/dsh/session"
)

// resume lets a session go on with the knobs that o chooses. All that can
// refuse them comes before the first write.
func (s *Session) resume(o Options) error {
	now := s.State()
	wish, err := now, error(nil)
	if o.Turn != nil {
		wish, err = o.Turn(now)
	}
	if err == nil {
		err = s.checkTurn(now, wish)
	}
	if err == nil {
		err = s.closeQuestions()
	}
	if err != nil {
		return err
	}
	if o.By == "" {
		o.By = "embedder"
	}
	return s.turn(now, wish, o.By)
}

// checkTurn says why the session cannot go on with what is wanted.
func (s *Session) checkTurn(now, wish State) error {
	if err := errors.Join(checkMode(wish.Mode), checkApproval(wish.Approval)); err != nil {
		return err
	}
	if now.Fixed && (wish.Mode != now.Mode || wish.Approval != now.Approval || wish.Preset != now.Preset) {
		return &FixedError{s.log.ID()}
	}
	return s.admits(wish.Mode)
}

// turn writes the knobs that change, and the preset where the pair itself does
// not tell it.
func (s *Session) turn(now, wish State, by string) error {
	if wish.Mode != now.Mode {
		if err := s.write(session.SandboxMode, wish.Mode, by); err != nil {
			return err
		}
	}
	if wish.Approval != now.Approval {
		if err := s.write(session.ApprovalPolicy, wish.Approval, by); err != nil {
			return err
		}
	}
	if wish.Preset == s.State().Preset || wish.Preset != s.presets.Name(wish.Preset, wish.Mode, wish.Approval) {
		return nil
	}
	return s.write(session.PermissionPreset, wish.Preset, by)
}

// admits says whether the session's calls may have the mode.
func (s *Session) admits(mode Mode) error {
	if s.admit == nil {
		return nil
	}
	return s.admit(Scope{Mode: mode, Root: s.State().Root})
}
