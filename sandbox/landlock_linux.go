//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
)

// landlockBackend confines with a Landlock domain on a thread.
//
// Once syscall.SysProcAttr can take a ruleset itself (UseLandlock), start can
// hand it over there in workspace-write; the filter keeps the thread needed.
type landlockBackend struct {
	probed probeCache
	cache  rulesets
}

func (*landlockBackend) name() string { return "landlock" }

func (b *landlockBackend) forget() { b.probed.forget() }

func (b *landlockBackend) known(policy.Scope) bool { return b.probed.known() }

func (b *landlockBackend) probe(ctx context.Context, _ policy.Scope, limit time.Duration) error {
	return b.probed.fill(ctx, limit, probeLandlock)
}

func (b *landlockBackend) confinement(mode policy.Mode) policy.Confinement {
	return landlockConfinement(b.probed.version(), mode)
}

func (b *landlockBackend) prepare(s policy.Scope, roots policy.Roots) (restriction, error) {
	abi := b.probed.version()
	rules, err := b.cache.get(rulesetKey(s, roots), func() (*ruleset, error) {
		return buildRuleset(abi, s, roots, nil)
	})
	if err != nil {
		return nil, err
	}
	return &landlockRestriction{abi: abi, scope: s, roots: roots, ruleset: rules}, nil
}

// landlockRestriction is the domain and the filter of one call.
type landlockRestriction struct {
	abi     int
	scope   policy.Scope
	roots   policy.Roots
	ruleset *ruleset
}

func (r *landlockRestriction) start(cmd *exec.Cmd) (inner, error) {
	rules := r.ruleset
	if terminals := terminalsOf(cmd); len(terminals) > 0 {
		// Never kept: a later terminal may have this one's name and number.
		var err error
		if rules, err = buildRuleset(r.abi, r.scope, r.roots, terminals); err != nil {
			return nil, err
		}
		defer rules.file.Close()
	}
	learnPidfd()
	return nil, onRestrictedThread(rules, filterFor(r.scope.Mode), cmd.Start)
}

func (r *landlockRestriction) do(f func() error) error {
	return onRestrictedThread(r.ruleset, filterFor(r.scope.Mode), f)
}

// argv is false: there is no program to put in front.
func (r *landlockRestriction) argv([]string, string) ([]string, bool) { return nil, false }

// failure is nil: there is no runner that could fail.
func (r *landlockRestriction) failure([]byte, int, syscall.Signal) error { return nil }

func (r *landlockRestriction) denials() denials {
	return denials{access: true, crossDevice: true, metadata: r.scope.Mode == policy.ReadOnly}
}

// onRestrictedThread runs f on a thread of its own that entered the domain of
// rules and loaded filter. A *setupError means that f did not run.
func onRestrictedThread(rules *ruleset, filter []unix.SockFilter, f func() error) error {
	enter := func() error {
		if err := enterDomain(rules.file); err != nil {
			return err
		}
		return loadFilter(filter, 0)
	}
	return onOwnThread(enter, f)
}
