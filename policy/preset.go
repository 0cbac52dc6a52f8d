package policy

// Preset is a name for a pair of the two knobs.
type Preset struct {
	Name     string
	Label    string
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
func ParsePreset(name string) (Preset, error) {
	var names []string
	for _, p := range Presets() {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Preset{}, &WordError{Knob: "preset", Word: name, Words: names}
}

// presetOf names the pair: the chosen preset if it still fits, else the first
// that does, else Custom.
func presetOf(chosen string, mode Mode, approval Approval) string {
	found := Custom
	for _, p := range Presets() {
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
