package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Preset is a name for a pair of the two knobs.
type Preset struct {
	// Name matches ^[a-z0-9][a-z0-9_-]{0,63}$ and is not Custom. Needed.
	Name string
	// Label is a short title on one line. Default: the name.
	Label string
	// Sentence says on one line what the preset means. Default: none.
	Sentence string
	Mode     Mode
	Approval Approval
}

// Custom is what a pair that no preset names is called. It is derived, never
// chosen and never logged.
const Custom = "custom"

// Presets returns the built-in presets in the order they are listed.
func Presets() []Preset {
	return []Preset{
		{"read-only", "Read only", "Commands and tools change no files; a wider mode is asked for, one call at a time.", ReadOnly, Ask},
		{"workspace-write", "Workspace write", "Files in the workspace and the temporary directories can be changed; more is asked for, one call at a time.", WorkspaceWrite, Ask},
		{"danger-full-access", "Full access", "Nothing is confined and nobody is asked.", DangerFullAccess, Never},
	}
}

// ParsePreset returns the built-in preset of that name.
func ParsePreset(name string) (Preset, error) { return (*PresetTable)(nil).Parse(name) }

// PresetTable is the presets that a session can choose from. It does not
// change; nil is the table of the built-in ones.
type PresetTable struct{ list []Preset }

// NewPresetTable returns the built-in presets followed by extra. An extra one
// with the name of a built-in stands in its place. Its error is a *PresetError.
func NewPresetTable(extra ...Preset) (*PresetTable, error) {
	t := &PresetTable{list: Presets()}
	for i, p := range extra {
		if reason := p.fault(); reason != "" {
			return nil, &PresetError{p.Name, reason}
		}
		if slices.ContainsFunc(extra[:i], func(q Preset) bool { return q.Name == p.Name }) {
			return nil, &PresetError{p.Name, "the name is given twice"}
		}
		t.add(p)
	}
	return t, nil
}

func (t *PresetTable) add(p Preset) {
	if p.Label == "" {
		p.Label = p.Name
	}
	if i := slices.IndexFunc(t.list, func(q Preset) bool { return q.Name == p.Name }); i >= 0 {
		t.list[i] = p
		return
	}
	t.list = append(t.list, p)
}

// PresetError says why a preset cannot stand in a table.
type PresetError struct {
	Name   string
	Reason string
}

func (e *PresetError) Error() string { return fmt.Sprintf("preset %q: %s", e.Name, e.Reason) }

var presetName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// fault says what is wrong with a preset; empty: nothing.
func (p Preset) fault() string {
	switch {
	case p.Name == Custom:
		return "the name is reserved for a pair that no preset names"
	case !presetName.MatchString(p.Name):
		return fmt.Sprintf("the name must match %s", presetName)
	case strings.ContainsAny(p.Label+p.Sentence, "\r\n"):
		return "label and sentence are one line each"
	}
	if err := errors.Join(checkMode(p.Mode), checkApproval(p.Approval)); err != nil {
		return err.Error()
	}
	return ""
}

// List returns the presets in the order they are listed.
func (t *PresetTable) List() []Preset {
	if t == nil {
		return Presets()
	}
	return slices.Clone(t.list)
}

// Parse returns the preset of that name. Its error is a *WordError.
func (t *PresetTable) Parse(name string) (Preset, error) {
	var names []string
	for _, p := range t.List() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, &WordError{Knob: "preset", Word: name, Words: names}
}

// Name names the pair: the chosen preset if it still fits, else the first that
// does, else Custom.
func (t *PresetTable) Name(chosen string, mode Mode, approval Approval) string {
	found := Custom
	for _, p := range t.List() {
		if p.Mode != mode || p.Approval != approval {
			continue
		}
		if p.Name == chosen {
			return chosen
		}
		if found == Custom {
			found = p.Name
		}
	}
	return found
}
