//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
)

// probeCache keeps the version of Landlock that a probe found to work, until it
// is forgotten. What failed is tried again by the next call: a full disk or a
// busy machine says nothing about the kernel.
type probeCache struct {
	mu    sync.Mutex // held while probing
	works bool
	found atomic.Int64
}

// version is what the last probe that worked has found.
func (c *probeCache) version() int { return int(c.found.Load()) }

func (c *probeCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.works = false
}

func (c *probeCache) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.works
}

func (c *probeCache) fill(ctx context.Context, limit time.Duration, probe func() (int, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.works {
		return nil
	}
	found, err := withinTime(ctx, limit, probe)
	if err != nil {
		return err
	}
	c.works = true
	c.found.Store(int64(found))
	return nil
}

// probeLandlock returns the version of Landlock to use, after it saw a
// restricted thread succeed in what is allowed and fail in what is not.
func probeLandlock() (int, error) {
	abi, err := usableABI()
	if err != nil {
		return 0, err
	}
	return abi, probeByDoing(abi)
}

// probeByDoing tries the real domain and filter of read-only, with one
// writable directory, on a thread that is thrown away. A host that has no
// temporary directory must do without the directory.
func probeByDoing(abi int) error {
	made, err := os.MkdirTemp("", "dsh-probe-")
	if err != nil {
		return tryOut(abi, policy.Scope{Root: "/dev"}, nil)
	}
	defer os.RemoveAll(made)
	dir, err := filepath.EvalSymlinks(made)
	if err != nil {
		return fmt.Errorf("landlock cannot be tried out: %w", err)
	}
	inside := filepath.Join(dir, "in")
	if err := os.Mkdir(inside, 0o700); err != nil {
		return fmt.Errorf("landlock cannot be tried out: %w", err)
	}
	return tryOut(abi, policy.Scope{Root: dir, Temp: inside}, []trial{
		{"create a file in a writable directory", 0, func() error { return touch(filepath.Join(inside, "f")) }},
		{"create a file outside of the writable directories", unix.EACCES, func() error { return touch(filepath.Join(dir, "f")) }},
	})
}

// trial is one thing to do in the probe and the error it must end with.
type trial struct {
	what string
	want unix.Errno
	do   func() error
}

func tryOut(abi int, s policy.Scope, trials []trial) error {
	roots := policy.Roots{Devices: []string{"/dev/null"}}
	if s.Temp != "" {
		roots.Dirs = []string{s.Temp}
	}
	rules, err := buildRuleset(abi, s, roots, nil)
	if err != nil {
		return fmt.Errorf("landlock cannot be tried out: %w", err)
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
	return fmt.Errorf("landlock was tried out and does not do what it promises: %s: want %s, got %v", t.what, want, err)
}

func touch(path string) error { return open(path, unix.O_WRONLY|unix.O_CREAT) }

func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
