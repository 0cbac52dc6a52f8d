package policy

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/dsh-run/dsh/session"
)

// Session is what one session may do, folded from its log. It is safe for
// concurrent use.
type Session struct {
	log *session.Log

	mu        sync.Mutex
	fold      fold
	questions int // numbers given to questions so far

	setting sync.Mutex // held while a setter decides and writes
}

// Begin pins the permissions of a session that was just created: it writes
// both knobs and the preset, so that a changed default never alters it.
func Begin(log *session.Log, mode Mode, approval Approval, by string) (*Session, error) {
	s, err := Resume(log)
	if err != nil {
		return nil, err
	}
	if err := s.write(session.SandboxMode, mode, by); err != nil {
		return nil, err
	}
	if err := s.write(session.ApprovalPolicy, approval, by); err != nil {
		return nil, err
	}
	if name := presetOf("", mode, approval); name != Custom {
		return s, s.write(session.PermissionPreset, name, by)
	}
	return s, nil
}

// Resume folds the permissions of an existing session. A knob with a value
// outside its vocabulary is an error.
func Resume(log *session.Log) (*Session, error) {
	s := &Session{log: log}
	err := log.Follow(func(e session.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fold.apply(e)
	})
	if err == nil {
		err = s.fold.err
	}
	if err != nil {
		return nil, fmt.Errorf("permissions of session %s: %w", log.ID(), err)
	}
	return s, nil
}

// Log of the session.
func (s *Session) Log() *session.Log { return s.log }

// State returns what the session may do now.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fold.state
}

// newQuestionID goes on after the last question of the log.
func (s *Session) newQuestionID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.questions = max(s.questions, s.fold.questions) + 1
	return "a" + strconv.Itoa(s.questions)
}

// SetMode changes the sandbox mode. by says who did it.
func (s *Session) SetMode(mode Mode, by string) error {
	s.setting.Lock()
	defer s.setting.Unlock()
	if s.State().Mode == mode {
		return nil
	}
	return s.write(session.SandboxMode, mode, by)
}

// SetApproval changes the approval policy. by says who did it.
func (s *Session) SetApproval(approval Approval, by string) error {
	s.setting.Lock()
	defer s.setting.Unlock()
	if s.State().Approval == approval {
		return nil
	}
	return s.write(session.ApprovalPolicy, approval, by)
}

// SetPreset chooses a preset: it writes the knobs that change, and the name.
func (s *Session) SetPreset(name, by string) error {
	p, err := ParsePreset(name)
	if err != nil {
		return err
	}
	if err := s.SetMode(p.Mode, by); err != nil {
		return err
	}
	if err := s.SetApproval(p.Approval, by); err != nil {
		return err
	}
	s.setting.Lock()
	defer s.setting.Unlock()
	return s.write(session.PermissionPreset, p.Name, by)
}

func (s *Session) write(t session.Type, value any, by string) error {
	_, err := s.log.Append(t, setting[any]{Value: value, By: by})
	return err
}
