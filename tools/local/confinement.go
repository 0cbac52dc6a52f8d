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
	// Undone is what the command planted and the check after it took back.
	Undone []undoneValue `json:"undone,omitempty"`
}

type undoneValue struct {
	Path string `json:"path"`
	What string `json:"what"`
}

func newConfinementValue(c policy.Confinement) confinementValue {
	v := confinementValue{
		Mode: c.Mode.String(), Backend: c.Backend, Enforcement: c.Enforcement.String(), Reasons: c.Reasons,
		VCSHooks: string(c.VCSHooks), Denied: c.Denied, Op: c.Op, Path: c.Path, Confidence: string(c.Confidence),
	}
	for _, u := range c.Undone {
		v.Undone = append(v.Undone, undoneValue(u))
	}
	return v
}
