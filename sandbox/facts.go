package sandbox

import (
	"context"

	"github.com/dsh-run/dsh/policy"
)

// Facts say what this machine can confine.
type Facts struct {
	// Kernel is the kernel's release; empty where there is none to tell.
	Kernel string
	// Landlock is the version of Landlock's interface, 0 without Landlock.
	Landlock int
	// Backends are those of this platform, in the order in which they are tried.
	Backends []BackendFacts
	// Modes say for each mode how it would be enforced; NotEnforced with
	// backend "none" where nothing would run.
	Modes []policy.Confinement
}

// BackendFacts say whether a backend works here.
type BackendFacts struct {
	Name  string
	Works bool
	// Why it does not work, and what to do. Empty when it does.
	Why string
}

// Probe tries all backends and says what they found. What it starts are
// commands of its own, confined. root is the directory that a workspace would
// be; a backend's program is not looked for in it.
func Probe(ctx context.Context, root string) Facts {
	facts := Facts{Kernel: kernelRelease(), Landlock: landlockVersion()}
	for _, a := range unsupported() {
		facts.Backends = append(facts.Backends, BackendFacts{Name: a.Backend, Why: a.Reason})
	}
	var first backend
	for i, err := range probeAll(ctx, installed, policy.Scope{Root: root}) {
		f := BackendFacts{Name: installed[i].name(), Works: err == nil}
		if err != nil {
			f.Why = err.Error()
		} else if first == nil {
			first = installed[i]
		}
		facts.Backends = append(facts.Backends, f)
	}
	for _, mode := range []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite} {
		c := policy.Confinement{Mode: mode, Backend: "none"}
		if first != nil {
			c = first.confinement(mode)
		}
		facts.Modes = append(facts.Modes, c)
	}
	facts.Modes = append(facts.Modes, policy.Unconfined())
	return facts
}
