//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
)

// A probe that takes longer than probeTime is no verdict: it gets patientTime
// once more. Both are generous for a few system calls on a busy machine.
const (
	probeTime   = 500 * time.Millisecond
	patientTime = 5 * time.Second
)

// probeCache keeps what a probe found until it is forgotten. A probe that ran
// out of time, or whose call was cancelled, found nothing.
type probeCache struct {
	mu    sync.Mutex
	done  bool
	found int
	err   error
}

func (c *probeCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = false
}

func (c *probeCache) abi() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.found
}

func (c *probeCache) get(ctx context.Context, probe func() (int, error)) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return c.found, c.err
	}
	found, err := withPatience(ctx, probe)
	if errors.Is(err, errSlowProbe) || ctx.Err() != nil {
		return 0, err
	}
	c.done, c.found, c.err = true, found, err
	return found, err
}

var errSlowProbe = fmt.Errorf("the probe did not end within %v; is this machine overloaded? Try again", patientTime)

func withPatience(ctx context.Context, probe func() (int, error)) (int, error) {
	for _, limit := range []time.Duration{probeTime, patientTime} {
		found, err := withinTime(ctx, limit, probe)
		if !errors.Is(err, errSlowProbe) {
			return found, err
		}
	}
	return 0, errSlowProbe
}

func withinTime(ctx context.Context, limit time.Duration, probe func() (int, error)) (int, error) {
	type answer struct {
		found int
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		found, err := probe()
		answered <- answer{found, err}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case a := <-answered:
		return a.found, a.err
	case <-timer.C:
		return 0, errSlowProbe
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// probeLandlock returns the version of Landlock to use, after it saw a
// restricted thread succeed in what is allowed and fail in what is not.
func probeLandlock() (int, error) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil || abi < 1 {
		return 0, landlockMissing(err)
	}
	abi = min(abi, newestABI)
	return abi, probeByDoing(abi)
}

func landlockMissing(err error) error {
	what := "it answered without a version"
	if err != nil {
		what = err.Error()
	}
	return &landlockError{fmt.Sprintf("Landlock is not available in this kernel or container (landlock_create_ruleset: %s). "+
		"It needs Linux 5.13 or later with landlock in the list of security modules (the lsm= boot parameter), and in a container "+
		"a seccomp profile that allows the landlock_* system calls; or choose danger-full-access explicitly to run without a sandbox", what), err}
}

// landlockError is a sentence for the user with its cause.
type landlockError struct {
	text string
	err  error
}

func (e *landlockError) Error() string { return e.text }
func (e *landlockError) Unwrap() error { return e.err }

// probeByDoing tries the real domain and filter of read-only, with one
// writable directory, on a thread that is thrown away.
func probeByDoing(abi int) error {
	dir, err := os.MkdirTemp("", "dsh-probe-")
	if err != nil {
		return tryOut(abi, "", nil) // a host without a temporary directory
	}
	defer os.RemoveAll(dir)
	inside, outside := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	for _, d := range []string{inside, outside} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return fmt.Errorf("landlock cannot be tried out: %w", err)
		}
	}
	return tryOut(abi, inside, []trial{
		{"create a file in a writable directory", 0, func() error { return touch(filepath.Join(inside, "f")) }},
		{"create a file outside of the writable directories", unix.EACCES, func() error { return touch(filepath.Join(outside, "f")) }},
	})
}

// trial is one thing to do in the probe and the error it must end with.
type trial struct {
	what string
	want unix.Errno
	do   func() error
}

func tryOut(abi int, writable string, trials []trial) error {
	rules, err := buildRuleset(abi, policy.Scope{Temp: writable}, probeRoots(writable), nil)
	if err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	defer rules.file.Close()
	trials = append(trials,
		trial{"open a directory for reading", 0, func() error { return open("/", unix.O_RDONLY|unix.O_DIRECTORY) }},
		trial{"change the mode of a file", unix.EROFS, func() error { return unix.Fchmod(-1, 0) }})
	trials = append(trials, deviceTrials()...)
	return onRestrictedThread(rules, filterFor(policy.ReadOnly), func() error {
		for _, t := range trials {
			if err := t.run(); err != nil {
				return err
			}
		}
		return nil
	})
}

// deviceTrials are those with devices that this host has and may write to.
func deviceTrials() []trial {
	var trials []trial
	for _, t := range []struct {
		device string
		want   unix.Errno
	}{{"/dev/null", 0}, {"/dev/zero", unix.EACCES}} {
		if open(t.device, unix.O_WRONLY) == nil {
			trials = append(trials, trial{"open " + t.device + " for writing", t.want, func() error { return open(t.device, unix.O_WRONLY) }})
		}
	}
	return trials
}

func (t trial) run() error {
	err := t.do()
	var errno unix.Errno
	if err != nil && !errors.As(err, &errno) {
		return fmt.Errorf("landlock was tried out and failed: %s: %w", t.what, err)
	}
	if errno == t.want {
		return nil
	}
	want := "success"
	if t.want != 0 {
		want = t.want.Error()
	}
	return fmt.Errorf("landlock was tried out and does not do what it promises: %s: want %s, got %v. Choose danger-full-access explicitly to run without a sandbox", t.what, want, err)
}

func probeRoots(writable string) policy.Roots {
	roots := policy.Roots{Devices: []string{"/dev/null"}}
	if writable != "" {
		roots.Dirs = []string{writable}
	}
	return roots
}

func touch(path string) error { return open(path, unix.O_WRONLY|unix.O_CREAT) }

func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
