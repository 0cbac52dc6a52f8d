package policy

import (
	"encoding/json"
	"fmt"

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
	// Fixed is set for a sub-session, whose scope never changes.
	Fixed bool
}

// setting is the data of the three knob events.
type setting[T any] struct {
	Value T      `json:"value"`
	By    string `json:"by"`
}

// fold is the state of a log so far.
type fold struct {
	state     State
	chosen    string // the preset last chosen
	questions int    // put so far
	err       error  // the first event that could not be understood
}

func (f *fold) apply(e session.Event) {
	if err := f.applyKnown(e); err != nil && f.err == nil {
		f.err = fmt.Errorf("event %d, %s: %w", e.Seq, e.Type, err)
	}
	f.state.Preset = presetOf(f.chosen, f.state.Mode, f.state.Approval)
}

func (f *fold) applyKnown(e session.Event) error {
	switch e.Type {
	case session.Start:
		var h session.Header
		if err := json.Unmarshal(e.Data, &h); err != nil {
			return err
		}
		f.state.Root = h.Cwd
		f.state.Fixed = h.Parent != nil && h.Parent.Sub
	case session.SandboxMode:
		return applySetting(e.Data, &f.state.Mode)
	case session.ApprovalPolicy:
		return applySetting(e.Data, &f.state.Approval)
	case session.PermissionPreset:
		return applySetting(e.Data, &f.chosen)
	case session.ApprovalAsked:
		f.questions++
	}
	return nil
}

func applySetting[T any](data json.RawMessage, knob *T) error {
	var s setting[T]
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	*knob = s.Value
	return nil
}
