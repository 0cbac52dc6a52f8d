package dsh

import (
	"fmt"
	"strings"

	"github.com/dsh-run/dsh/policy"
)

// LogPlaceError says that a session's commands could change its log. No
// sandbox can take a file out of a writable directory.
type LogPlaceError struct {
	Log  string // path of the log
	Root string // the writable directory that holds it
	Mode policy.Mode
}

func (e *LogPlaceError) Error() string {
	return fmt.Sprintf("the log %s lies in %s, which commands may change in %s; choose a place outside of it", e.Log, e.Root, e.Mode)
}

// UnknownToolsError says that Options.Tools names tools that do not exist.
type UnknownToolsError struct {
	Names []string
	Known []string
}

func (e *UnknownToolsError) Error() string {
	return fmt.Sprintf("no such tool: %s; there are %s", strings.Join(e.Names, ", "), strings.Join(e.Known, ", "))
}
