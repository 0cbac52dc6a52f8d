package policy

import "fmt"

// Enforcement says how completely a mode's promise about file effects is
// enforced. The zero value claims nothing.
type Enforcement uint8

// Partial means that some file effect is not governed: see Confinement.Reasons.
const (
	NotEnforced Enforcement = iota
	Partial
	Full
)

var enforcementWords = []string{"none", "partial", "full"}

func (e Enforcement) String() string { return wordOf(enforcementWords, e) }
func (e Enforcement) MarshalText() ([]byte, error) {
	return marshalWord("enforcement", enforcementWords, e)
}

// UnmarshalText accepts none, partial and full.
func (e *Enforcement) UnmarshalText(b []byte) (err error) {
	*e, err = parseWord[Enforcement]("enforcement", enforcementWords, string(b))
	return err
}

// The names that Confinement.Reasons uses: each is something that was not
// governed. Only MetadataWrites and Truncate make an enforcement partial.
const (
	MetadataWrites       = "metadata_writes"
	Truncate             = "truncate"
	UnixSockets          = "unix_sockets"
	Network              = "network"
	Signals              = "signals"
	ProcessView          = "process_view"
	Orphans              = "orphans"
	PreexistingHardlinks = "preexisting_hardlinks"
)

// VCSHooks says what keeps a confined command from planting code that git
// would run later, outside.
type VCSHooks string

// The zero value, like HooksNone, claims nothing.
const (
	HooksNone     VCSHooks = "none"
	HooksChecked  VCSHooks = "checked"  // compared and undone after the run
	HooksEnforced VCSHooks = "enforced" // cannot be written during the run
)

// Confinement says what confined one call, how completely, and whether it was
// denied something. It is one and the same object in tool values, the log, the
// command's output and over MCP.
type Confinement struct {
	Mode Mode `json:"mode"`
	// Backend that confined the call: landlock, bwrap, path; none in
	// danger-full-access.
	Backend     string      `json:"backend"`
	Enforcement Enforcement `json:"enforcement"`
	// Reasons name what was not governed.
	Reasons  []string `json:"reasons,omitempty"`
	VCSHooks VCSHooks `json:"vcs_hooks,omitempty"`

	Denied bool `json:"denied"`
	// Op is what was denied, for example "write". Set when Denied.
	Op string `json:"op,omitempty"`
	// Path that was denied, where it is known.
	Path string `json:"path,omitempty"`
	// Confidence of Denied: ByPath or ByText.
	Confidence Confidence `json:"confidence,omitempty"`
	// Undone is what the command planted for later and the check after it took
	// back; see HooksChecked.
	Undone []Undone `json:"undone,omitempty"`
}

// Undone is one thing that was taken back after a command had ended.
type Undone struct {
	// Path is absolute.
	Path string `json:"path"`
	// What was found and what became of it, in a few words.
	What string `json:"what"`
}

// Confidence says what a denial was concluded from.
type Confidence string

// The confidences.
const (
	ByPath Confidence = "path" // the named path lies outside of what may be written
	ByText Confidence = "text" // only the wording of an error
)

// Unconfined is the Confinement of a call in danger-full-access.
func Unconfined() Confinement {
	return Confinement{Mode: DangerFullAccess, Backend: "none"}
}

// Marker is the line that tells a model that the sandbox denied something.
func (c Confinement) Marker() string {
	return fmt.Sprintf("[sandbox: file access denied under %s mode]", c.Mode)
}

// Hint is the line after the Marker: how this exact call may be widened. It is
// empty where it cannot be.
func (c Confinement) Hint(approval Approval) string {
	if approval == Never || c.Mode >= DangerFullAccess {
		return ""
	}
	targets := `"workspace-write" or "danger-full-access"`
	if c.Mode == WorkspaceWrite {
		targets = `"danger-full-access"`
	}
	return fmt.Sprintf("[to go on: repeat this exact call once with sandbox_permissions set to %s, the narrowest that is enough, and justification set to one sentence for the person who decides]", targets)
}
