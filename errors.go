package dsh

import (
	"fmt"
	"strings"

	"github.com/dsh-run/dsh/policy"
)

// ReachError says that calls could change what they must not: the session's
// log, or what Options.OutOfReach names.
type ReachError struct {
	File string
	// Log says that File is the session's log, or the folder that belongs to it.
	Log  bool
	Root string // the writable directory that holds it
	Mode policy.Mode
}

func (e *ReachError) Error() string {
	what := e.File
	if e.Log {
		what = "the log " + what
	}
	return fmt.Sprintf("%s lies in %s, which commands may change in %s; choose a place outside of it", what, e.Root, e.Mode)
}

// WorkspaceError says that a session cannot go on in another workspace than
// its own.
type WorkspaceError struct {
	Log  string
	Want string // its workspace
	Got  string
}

func (e *WorkspaceError) Error() string {
	return fmt.Sprintf("the session of %s has the workspace %s and cannot go on in %s", e.Log, e.Want, e.Got)
}

// UnknownToolsError says that Options.Tools names tools that do not exist.
type UnknownToolsError struct {
	Names []string
	Known []string
}

func (e *UnknownToolsError) Error() string {
	return fmt.Sprintf("no such tool: %s; there are %s", strings.Join(e.Names, ", "), strings.Join(e.Known, ", "))
}
