package sandbox

import (
	"context"
	"slices"

	"github.com/dsh-run/dsh/policy"
)

// Facts say what this machine can confine.
type Facts struct {
	// Kernel is the kernel's release; empty where there is none to tell.
	Kernel string
	// Landlock is the version of Landlock's interface, 0 without Landlock.
	Landlock int
	// Backends are those of the chain, in the order in which they are tried, and
	// then the platform's others.
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
	// Chosen: the chain has it. The others confine nothing.
	Chosen bool
	// Modes say how it would enforce each mode that is confined. Empty when it
	// does not work.
	Modes []policy.Confinement
}

// confinedModes are all that a backend enforces.
var confinedModes = []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite}

// Probe is [Chain.Probe] for every backend of this platform.
func Probe(ctx context.Context, root string) Facts { return Chain{}.Probe(ctx, root, false) }

// Probe tries out the chain's backends and the platform's others, and says what
// they found. What it starts are commands of its own, confined. root is the
// directory that a workspace would be; a backend's program is not looked for in
// it. requireFull is that of the calls' [Policy]. A chain that Check refuses is a
// programmer error.
func (c Chain) Probe(ctx context.Context, root string, requireFull bool) Facts {
	if err := c.Check(); err != nil {
		panic("sandbox: Probe of a chain that cannot be used: " + err.Error())
	}
	facts := Facts{Kernel: kernelRelease(), Landlock: landlockVersion()}
	for _, a := range unsupported() {
		facts.Backends = append(facts.Backends, BackendFacts{Name: a.Backend, Why: a.Reason, Chosen: c.Runner == nil})
	}
	chosen := c.backends()
	others := slices.DeleteFunc(slices.Clone(installed), func(b backend) bool { return slices.Contains(chosen, b) })
	facts.Backends = append(facts.Backends, probeFacts(ctx, root, chosen, true)...)
	facts.Backends = append(facts.Backends, probeFacts(ctx, root, others, false)...)
	facts.Modes = append(modesOf(facts.Backends, requireFull), policy.Unconfined())
	return facts
}

func probeFacts(ctx context.Context, root string, backends []backend, chosen bool) []BackendFacts {
	facts := make([]BackendFacts, len(backends))
	for i, err := range probeAll(ctx, backends, policy.Scope{Root: root}) {
		f := BackendFacts{Name: backends[i].name(), Works: err == nil, Chosen: chosen}
		if err != nil {
			f.Why = err.Error()
		} else {
			for _, mode := range confinedModes {
				f.Modes = append(f.Modes, backends[i].confinement(mode))
			}
		}
		facts[i] = f
	}
	return facts
}

// modesOf says for each mode what the first backend would enforce that works, is
// chosen, and gives enough.
func modesOf(backends []BackendFacts, requireFull bool) []policy.Confinement {
	var modes []policy.Confinement
	for i, mode := range confinedModes {
		c := policy.Confinement{Mode: mode, Backend: "none"}
		for _, b := range slices.Backward(backends) {
			if b.Works && b.Chosen && (!requireFull || b.Modes[i].Enforcement == policy.Full) {
				c = b.Modes[i]
			}
		}
		modes = append(modes, c)
	}
	return modes
}
