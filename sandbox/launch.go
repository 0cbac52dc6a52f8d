package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
)

// LaunchOptions say what [Launch] becomes and what that may reach.
type LaunchOptions struct {
	// Argv is the command line; Argv[0] without a slash is looked for in PATH.
	// Needed.
	Argv []string
	// Readable are the files and directories that may be read and executed, with
	// all that is below them. Default: /, which is everything.
	Readable []string
	// Writable may be read, executed and changed, with all that is below them;
	// but no device node can be made there. A device or another file can be
	// named itself. Default: none.
	Writable []string
	// DenyMetadata refuses changes of modes, owners, times and attributes of
	// files, wherever they are, with EROFS. Default: false, they are not
	// governed.
	DenyMetadata bool
	// Status is an inherited descriptor, 3 or higher, that gets the line of
	// [LaunchFacts] right before the command is executed, and ends there.
	// Default: 0, none; then [LaunchNotice] is written to stderr where the
	// enforcement is only partial.
	Status int
}

// LaunchNotice is the line that a launched command's stderr begins with where
// this kernel enforces only a part and there is no other channel to say so.
// Whoever reads that stderr leaves it out by comparing the whole line.
const LaunchNotice = "landlock-run: this kernel enforces the sandbox only partially; 'dsh-run landlock --probe' says what is missing"

// The exit codes of a launcher whose command did not run.
const (
	launchFailed  = 125 // the launcher itself
	launchRefused = 126 // the command is there and cannot be executed
	launchMissing = 127 // there is no such command
)

// LaunchError says why [Launch] did not become the command, which then never
// ran.
type LaunchError struct {
	// ExitCode is what a launcher exits with: 125 for its own failure, 126 for a
	// command that cannot be executed, 127 for one that is not there.
	ExitCode int
	Err      error
}

func (e *LaunchError) Error() string { return e.Err.Error() }
func (e *LaunchError) Unwrap() error { return e.Err }

func launchFailure(err error) error { return &LaunchError{launchFailed, err} }

// executeFailure is the error of a command that cannot be looked up or
// executed.
func executeFailure(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return &LaunchError{launchMissing, err}
	}
	return &LaunchError{launchRefused, err}
}

// LaunchFacts are what [Launch] enforces on this kernel.
type LaunchFacts struct {
	// ABI is the version of Landlock that is used.
	ABI int
	// Ungoverned names what that version cannot refuse. Empty: all that is
	// promised is enforced.
	Ungoverned []string
}

// String is one line.
func (f LaunchFacts) String() string {
	if len(f.Ungoverned) == 0 {
		return fmt.Sprintf("landlock: fully enforced, ABI %d", f.ABI)
	}
	return fmt.Sprintf("landlock: partially enforced: ABI %d does not govern %s", f.ABI, strings.Join(f.Ungoverned, ", "))
}

// launchFacts is the pure part of [ProbeLaunch].
func launchFacts(abi int) LaunchFacts {
	facts := LaunchFacts{ABI: abi}
	for _, step := range []struct {
		since int
		what  string
	}{{3, "truncate"}, {5, "device_ioctls"}, {6, "abstract_sockets"}, {6, "signals"}} {
		if abi < step.since {
			facts.Ungoverned = append(facts.Ungoverned, step.what)
		}
	}
	return facts
}
