//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"sync"
	"syscall"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
)

// landlockBackend confines with a Landlock domain on a thread.
//
// Once syscall.SysProcAttr can take a ruleset itself (UseLandlock), start can
// hand it over there in read-write modes; the filter keeps the thread needed.
type landlockBackend struct {
	probed probeCache
	cache  rulesets
}

func (*landlockBackend) name() string { return "landlock" }

func (b *landlockBackend) forget() { b.probed.forget() }

func (b *landlockBackend) probe(ctx context.Context) error {
	_, err := b.probed.get(ctx, probeLandlock)
	return err
}

func (b *landlockBackend) confinement(mode policy.Mode) policy.Confinement {
	return landlockConfinement(b.probed.abi(), mode)
}

func (b *landlockBackend) prepare(s policy.Scope, roots policy.Roots) (restriction, error) {
	r := &landlockRestriction{backend: b, scope: s, roots: roots}
	var err error
	r.ruleset, err = r.rulesetFor(nil)
	return r, err
}

// landlockRestriction is the domain and the filter of one call.
type landlockRestriction struct {
	backend *landlockBackend
	scope   policy.Scope
	roots   policy.Roots
	ruleset *ruleset
}

func (r *landlockRestriction) rulesetFor(terminals []terminal) (*ruleset, error) {
	return r.backend.cache.get(rulesetKey(r.scope, r.roots, terminals), func() (*ruleset, error) {
		if err := checkRoot(r.scope.Root); err != nil {
			return nil, err
		}
		return buildRuleset(r.backend.probed.abi(), r.scope, r.roots, terminals)
	})
}

func (r *landlockRestriction) start(cmd *exec.Cmd) error {
	rules := r.ruleset
	if terminals := terminalsOf(cmd); len(terminals) > 0 {
		var err error
		if rules, err = r.rulesetFor(terminals); err != nil {
			return err
		}
	}
	learnPidfd()
	return onRestrictedThread(rules, filterFor(r.scope.Mode), cmd.Start)
}

func (r *landlockRestriction) do(f func() error) error {
	return onRestrictedThread(r.ruleset, filterFor(r.scope.Mode), f)
}

// argv is false: there is no program to put in front.
func (r *landlockRestriction) argv([]string) ([]string, bool) { return nil, false }

func (r *landlockRestriction) denials() denials {
	d := denials{access: true, crossDevice: true}
	d.metadata = r.scope.Mode == policy.ReadOnly
	return d
}

// onRestrictedThread runs f on a thread of its own that entered the domain of
// rules and loaded filter, and that ends with f. A *setupError means that f did
// not run.
func onRestrictedThread(rules *ruleset, filter []unix.SockFilter, f func() error) error {
	done := make(chan error, 1)
	go sealOffMain(func() {
		err := errEnded
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic on the restricted thread: %v", p)
			}
			done <- err
		}()
		if failed := restrictThread(rules, filter); failed != nil {
			err = failed
			return
		}
		err = f()
	})
	return <-done
}

var errEnded = errors.New("the function ended its goroutine on the restricted thread")

// learnPidfd lets package os find out, on an unrestricted thread, whether
// process descriptors work: it asks once per process, and on a restricted
// thread it might find that they do not.
var learnPidfd = sync.OnceFunc(func() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Release()
	}
})

// restrictThread restricts the calling thread for ever.
func restrictThread(rules *ruleset, filter []unix.SockFilter) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return &setupError{"set no_new_privs", err}
	}
	err := ll.LandlockRestrictSelf(int(rules.file.Fd()), 0)
	goruntime.KeepAlive(rules)
	if errors.Is(err, syscall.E2BIG) {
		return &setupError{"landlock: this process is already inside as many domains as the kernel allows", err}
	}
	if err != nil {
		return &setupError{"landlock_restrict_self", err}
	}
	return loadFilter(filter)
}
