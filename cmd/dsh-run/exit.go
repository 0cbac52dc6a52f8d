package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dsh-run/dsh/ptc"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/tools"
)

// The exit codes of every subcommand but exec.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDenied      = 3
	exitUnavailable = 4
	exitTimeout     = 124
)

// usageError is a mistake in how the command was called or where it was put;
// nothing has run.
type usageError struct {
	err error
	// flags says that the command's help would have shown the right way.
	flags bool
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...)}
}

func flagsf(format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...), flags: true}
}

// exitError ends the command with a code; message may be empty when everything
// has been said.
type exitError struct {
	code    int
	message string
}

func (e *exitError) Error() string { return e.message }

func exitCodeOf(err error) int {
	var exit *exitError
	var usage *usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &usage):
		return exitUsage
	default:
		// What is left are cobra's own complaints about arguments.
		return exitUsage
	}
}

func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// denials are the codes of a call that something refused on purpose.
var denials = []tools.Code{
	tools.DeniedByListener, tools.DeniedByGuard, tools.DeniedByReview, tools.BlockedByPost,
	tools.ApprovalRejected, tools.ApprovalCancelled, tools.ApprovalUnavailable, "FS_SANDBOX_DENIED",
}

// callExit is the exit code of one call.
func callExit(r tools.Result) int {
	switch {
	case r.Error == nil && sandboxDenied(r.Value):
		return exitDenied
	case r.Error == nil:
		return exitOK
	case r.Error.Code == tools.SandboxUnavailable:
		return exitUnavailable
	case slices.Contains(denials, r.Error.Code):
		return exitDenied
	case r.Error.Code == tools.ToolTimeout:
		return exitTimeout
	default:
		return exitFailed
	}
}

// sandboxDenied reports whether a command failed because it was denied; a
// denial beside exit code 0 is a note.
func sandboxDenied(value json.RawMessage) bool {
	var v struct {
		ExitCode *int `json:"exit_code"`
		Sandbox  struct {
			Denied bool `json:"denied"`
		} `json:"sandbox"`
	}
	return json.Unmarshal(value, &v) == nil && v.Sandbox.Denied && (v.ExitCode == nil || *v.ExitCode != 0)
}

// runExit is the exit code of a program's run.
func runExit(r ptc.Report) int {
	unavailable := slices.ContainsFunc(r.Calls, func(c ptc.SubCall) bool { return c.Code == tools.SandboxUnavailable })
	switch {
	case unavailable, r.Failure != nil && r.Failure.Kind == runtime.SandboxUnavailable:
		return exitUnavailable
	case r.Failure == nil:
		return exitOK
	case r.Failure.Kind == runtime.Denied, r.Failure.Kind == runtime.Exception && thrownDenial(r.Failure.Thrown):
		return exitDenied
	case r.Failure.Kind == runtime.Timeout:
		return exitTimeout
	default:
		return exitFailed
	}
}

// thrownDenial reports whether the error that ended the program was that of a
// refused call.
func thrownDenial(thrown json.RawMessage) bool {
	var e struct {
		Code     tools.Code      `json:"code"`
		DeniedBy *tools.DeniedBy `json:"deniedBy"`
	}
	return json.Unmarshal(thrown, &e) == nil && e.DeniedBy != nil && e.DeniedBy.Stage != tools.StageMaterialise ||
		slices.Contains(denials, e.Code)
}
