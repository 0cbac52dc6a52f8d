package local

import "github.com/dsh-run/dsh/policy"

// confinementValue is a policy.Confinement in a value, with its words as the
// strings that they are in JSON, for the value's schema.
type confinementValue struct {
	Mode        string   `json:"mode"`
	Backend     string   `json:"backend"`
	Enforcement string   `json:"enforcement"`
	Reasons     []string `json:"reasons,omitempty"`
	VCSHooks    string   `json:"vcs_hooks,omitempty"`
	Denied      bool     `json:"denied"`
	Op          string   `json:"op,omitempty"`
	Path        string   `json:"path,omitempty"`
	Confidence  string   `json:"confidence,omitempty"`
}

func newConfinementValue(c policy.Confinement) confinementValue {
	return confinementValue{
		Mode: c.Mode.String(), Backend: c.Backend, Enforcement: c.Enforcement.String(), Reasons: c.Reasons,
		VCSHooks: string(c.VCSHooks), Denied: c.Denied, Op: c.Op, Path: c.Path, Confidence: string(c.Confidence),
	}
}
