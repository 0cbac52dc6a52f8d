package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/dsh-run/dsh/session"
)

// Session is what one session may do, folded from its log. It is safe for
// concurrent use.
type Session struct {
	log     *session.Log
	presets *PresetTable
	admit   func(Scope) error

	mu        sync.Mutex
	fold      fold
	questions int // the highest number given to a question so far

	setting sync.Mutex // held while a setter decides and writes
}

// Options of a session's permissions. Nil means all defaults.
type Options struct {
	// Presets that can be chosen. Default: the built-in ones.
	Presets *PresetTable
	// Preset is the one that was chosen at the start, which tells apart those
	// that share a pair; one that does not fit the pair is not written.
	// Default: the first that fits. [Resume] ignores it.
	Preset string
	// Admit says whether the session's calls may have a scope, of which Mode and
	// Root are set. It is called before a mode is written, by [Begin], [Resume]
	// and the setters, and by Resume for a mode that stays as well. With an error
	// nothing is written. Default: all are admitted.
	Admit func(Scope) error
	// Turn returns the Mode, Approval and Preset that a session goes on with,
	// given those of its log. [Resume] calls it before it writes anything; its
	// error ends that. A preset that does not fit the pair is not written.
	// Default: those of the log. [Begin] ignores it.
	Turn func(now State) (State, error)
	// By says in the log who chose what Turn returns. Default: "embedder".
	By string
}

// Begin pins the permissions of a session that was just created: it writes
// both knobs and the preset, so that a changed default never alters it. by
// says who chose them. A sub-session starts with [BeginSub].
func Begin(log *session.Log, mode Mode, approval Approval, by string, o *Options) (*Session, error) {
	s, err := follow(log, o)
	if err == nil && s.State().Fixed {
		err = errors.New("it is a sub-session, whose scope follows from its parent")
	}
	if err == nil {
		preset := ""
		if o != nil {
			preset = o.Preset
		}
		err = s.begin(mode, approval, preset, by, FindWorktree(s.State().Root))
	}
	if err != nil {
		return nil, fmt.Errorf("begin the permissions of session %s: %w", log.ID(), err)
	}
	return s, nil
}

// begin writes the first setting of both knobs, and the preset where one names
// the pair.
func (s *Session) begin(mode Mode, approval Approval, preset, by string, tree *Worktree) error {
	if s.begun() {
		return errors.New("its log has permissions already")
	}
	if err := errors.Join(checkMode(mode), checkApproval(approval)); err != nil {
		return err
	}
	if err := s.admits(mode); err != nil {
		return err
	}
	if tree != nil {
		if _, err := s.log.Append(session.SandboxWorktree, tree); err != nil {
			return err
		}
	}
	if err := s.write(session.SandboxMode, mode, by); err != nil {
		return err
	}
	if err := s.write(session.ApprovalPolicy, approval, by); err != nil {
		return err
	}
	if name := s.presets.Name(preset, mode, approval); name != Custom {
		return s.write(session.PermissionPreset, name, by)
	}
	return nil
}

func (s *Session) begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fold.begun
}

// Resume folds the permissions of an existing session and closes the questions
// that no answer came for: they are logged as cancelled. What Turn chose anew
// is written after that. A knob with a value outside its vocabulary is an
// error. No other Session may have the log.
func Resume(log *session.Log, o *Options) (*Session, error) {
	options := Options{}
	if o != nil {
		options = *o
	}
	s, err := follow(log, &options)
	if err == nil {
		err = s.resume(options)
	}
	if err != nil {
		return nil, fmt.Errorf("resume the permissions of session %s: %w", log.ID(), err)
	}
	return s, nil
}

// follow folds the log so far, and whatever is appended to it.
func follow(log *session.Log, o *Options) (*Session, error) {
	s := &Session{log: log}
	if o != nil {
		s.presets, s.admit = o.Presets, o.Admit
	}
	s.fold.presets = s.presets
	err := log.Follow(func(e session.Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.fold.apply(e)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, errors.Join(err, s.fold.err)
}

// closeQuestions answers the questions that the process which asked them left
// open.
func (s *Session) closeQuestions() error {
	s.mu.Lock()
	open := slices.Clone(s.fold.open)
	s.mu.Unlock()
	for _, q := range open {
		d := Decision{Outcome: Cancelled, Why: "the process that asked, or this copy of its log, ended before an answer"}
		if err := s.logDecided(q.questionID, d, 0); err != nil {
			return err
		}
	}
	return nil
}

// Log of the session.
func (s *Session) Log() *session.Log { return s.log }

// Presets that the session can choose from.
func (s *Session) Presets() *PresetTable { return s.presets }

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
