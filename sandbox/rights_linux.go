//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
)

// newestABI is the newest version of Landlock whose rights are known here. A
// later one may give bits another company, so it is used as this one.
const newestABI = 9

// The groups of rights that a path can be granted.
const (
	readRights = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSReadDir
	// nodeRights make device nodes. They are granted nowhere: a node is a way
	// to a disk or to memory from any directory.
	nodeRights = ll.AccessFSMakeChar | ll.AccessFSMakeBlock
	// fileRights are those that mean something for what is not a directory.
	fileRights = ll.AccessFSExecute | ll.AccessFSWriteFile | ll.AccessFSReadFile |
		ll.AccessFSTruncate | ll.AccessFSIoctlDev
)

// usableABI is the version of Landlock to use. Version 6 came with signals that
// do not even reach other threads of the same process, which the Go runtime
// depends on; where that is not mended it is used as version 5.
func usableABI() (int, error) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil || abi < 1 {
		return 0, &missingError{err}
	}
	errata, err := ll.LandlockGetErrata()
	if err != nil {
		errata = 0
	}
	return usable(abi, errata), nil
}

// signalsMended is the erratum of signals between threads.
const signalsMended = 1 << 1

func usable(abi, errata int) int {
	if abi >= 6 && errata&signalsMended == 0 {
		return 5
	}
	return min(abi, newestABI)
}

// missingError says why there is no Landlock and what to do.
type missingError struct{ err error }

func (e *missingError) Error() string {
	why, do := "the kernel answered without a version", "use a newer kernel"
	switch {
	case errors.Is(e.err, unix.ENOSYS):
		why = "this kernel does not have it, or the container hides it"
		do = "use Linux 5.13 or later; in a container, allow the landlock_* system calls in its seccomp profile"
	case errors.Is(e.err, unix.EOPNOTSUPP):
		why = "this kernel was started without it"
		do = "add landlock to the list in the lsm= boot parameter of the machine"
	case errors.Is(e.err, unix.EPERM):
		why = "a system call filter around this process forbids it"
		do = "allow the landlock_* system calls in the container's seccomp profile"
	case e.err != nil:
		why = e.err.Error()
	}
	return fmt.Sprintf("Landlock, the kernel's sandbox, is not available: %s. To get it, %s", why, do)
}

func (e *missingError) Unwrap() error { return e.err }

// handledRights are all file rights of a version of Landlock: what is handled
// and not granted is refused. Network rights are never among them; they would
// refuse every connection.
func handledRights(abi int) ll.RulesetAttr {
	rights := uint64(1)<<13 - 1 // version 1: execute to make_sym
	for _, added := range []struct {
		abi   int
		right uint64
	}{{2, ll.AccessFSRefer}, {3, ll.AccessFSTruncate}, {5, ll.AccessFSIoctlDev}, {9, ll.AccessFSResolveUnix}} {
		if abi >= added.abi {
			rights |= added.right
		}
	}
	attr := ll.RulesetAttr{HandledAccessFS: rights}
	if abi >= 6 {
		attr.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	return attr
}

// directoryRights are what a writable directory is granted.
func directoryRights(abi int) uint64 { return handledRights(abi).HandledAccessFS &^ nodeRights }

// deviceRights are what a device or a terminal is granted.
func deviceRights(abi int) uint64 {
	return handledRights(abi).HandledAccessFS & fileRights &^ ll.AccessFSExecute
}

// landlockConfinement says what Landlock of version abi, with the filter,
// enforces of mode.
func landlockConfinement(abi int, mode policy.Mode) policy.Confinement {
	c := policy.Confinement{Mode: mode, Backend: "landlock", Enforcement: policy.Full, VCSHooks: policy.HooksEnforced}
	if mode == policy.WorkspaceWrite {
		c.VCSHooks = policy.HooksChecked
	}
	for _, gap := range []struct {
		reason  string
		open    bool
		partial bool
	}{
		{policy.MetadataWrites, mode == policy.WorkspaceWrite, true},
		{policy.Truncate, abi < 3, true},
		{policy.UnixSockets, abi < 9, false},
		{policy.Network, true, false},
		{policy.Signals, abi < 6, false},
		{policy.ProcessView, true, false},
		{policy.Orphans, true, false},
		// In read-only nothing is writable that others put links into.
		{policy.PreexistingHardlinks, mode == policy.WorkspaceWrite, false},
	} {
		if !gap.open {
			continue
		}
		c.Reasons = append(c.Reasons, gap.reason)
		if gap.partial {
			c.Enforcement = policy.Partial
		}
	}
	return c
}
