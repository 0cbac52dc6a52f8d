//go:build linux && (amd64 || arm64)

package sandbox

import (
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

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
		c.VCSHooks = policy.HooksNone
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
