package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dsh-run/dsh/session"
)

// State is what a session may do at one moment.
type State struct {
	Mode     Mode
	Approval Approval
	// Preset names the pair: a preset's name, or Custom.
	Preset string
	// Root is the workspace: the session's immutable working directory.
	Root string
	// Worktree is set where Root was a linked work tree of git when the session
	// began.
	Worktree *Worktree
	// Fixed is set for a sub-session, whose scope never changes.
	Fixed bool
}

// setting is the data of the three knob events.
type setting[T any] struct {
	Value T      `json:"value"`
	By    string `json:"by"`
}

// Accept refuses an event that sets a knob to a value outside its vocabulary.
// It is what [session.Open] takes, so that such a log is refused before
// anything in it is changed.
func Accept(e session.Event) error { return new(fold).applyKnown(e) }

// fold is the state of a log so far.
type fold struct {
	presets   *PresetTable
	state     State
	parent    *session.Parent
	seq       uint64  // of the last event
	begun     bool    // a knob was written
	chosen    string  // the preset last chosen
	questions int     // the highest number of a question
	open      []asked // the questions without an answer
	err       error   // the first event that could not be understood
}

func (f *fold) apply(e session.Event) {
	f.seq = e.Seq
	if err := f.applyKnown(e); err != nil && f.err == nil {
		f.err = fmt.Errorf("event %d, %s: %w", e.Seq, e.Type, err)
	}
	f.state.Preset = f.presets.Name(f.chosen, f.state.Mode, f.state.Approval)
}

func (f *fold) applyKnown(e session.Event) error {
	switch e.Type {
	case session.Start:
		return f.start(e.Data)
	case session.SandboxMode:
		f.begun = true
		return applySetting(e.Data, &f.state.Mode)
	case session.ApprovalPolicy:
		f.begun = true
		return applySetting(e.Data, &f.state.Approval)
	case session.PermissionPreset:
		return applySetting(e.Data, &f.chosen)
	case session.SandboxWorktree:
		return json.Unmarshal(e.Data, &f.state.Worktree)
	case session.ApprovalAsked:
		f.asked(e.Data)
	case session.ApprovalDecided:
		f.decided(e.Data)
	}
	return nil
}

func (f *fold) start(data json.RawMessage) error {
	var h session.Header
	if err := json.Unmarshal(data, &h); err != nil {
		return err
	}
	f.parent = h.Parent
	f.state.Root = h.Cwd
	f.state.Fixed = h.Parent != nil && h.Parent.Sub
	return nil
}

func applySetting[T any](data json.RawMessage, knob *T) error {
	var s setting[*T]
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if s.Value == nil {
		return errors.New("it has no value")
	}
	*knob = *s.Value
	return nil
}

// asked and decided read only what pairs them: what else they hold is for
// whoever audits the log.
func (f *fold) asked(data json.RawMessage) {
	var q asked
	if json.Unmarshal(data, &q.questionID) != nil {
		return
	}
	f.open = append(f.open, q)
	if n, err := strconv.Atoi(strings.TrimPrefix(q.ID, "a")); err == nil {
		f.questions = max(f.questions, n)
	}
}

func (f *fold) decided(data json.RawMessage) {
	var id questionID
	if json.Unmarshal(data, &id) == nil {
		f.open = slices.DeleteFunc(f.open, func(q asked) bool { return q.ID == id.ID })
	}
}
