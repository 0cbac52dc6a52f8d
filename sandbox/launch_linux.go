//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
)

// Launch confines by Landlock and a system call filter, and executes the
// command in place of the calling process. It is the form of the sandbox for
// programs in other languages, which start a launcher with the command behind
// it; in Go, [Confine] costs less and says more.
//
// The command gets no descriptors but its streams, core size 0, no_new_privs,
// and a session of its own, unless the process leads a group, as below an
// interactive shell: the kernel gives it none then. The filter refuses forged
// terminal input either way.
//
// It returns only on failure, with a *LaunchError, and then nothing was
// executed. The process should end: its descriptors from 3 on are set to close,
// and its session and limits may be changed.
func Launch(o LaunchOptions) error {
	abi, err := usableABI()
	if err != nil {
		return launchFailure(err)
	}
	return launch(abi, o)
}

// ProbeLaunch says what [Launch] enforces here, after it was tried out. The
// error says why it can enforce nothing, and what to do.
func ProbeLaunch() (LaunchFacts, error) {
	abi, err := probeLandlock()
	if err != nil {
		return LaunchFacts{}, err
	}
	return launchFacts(abi), nil
}

func launch(abi int, o LaunchOptions) error {
	if len(o.Argv) == 0 || o.Argv[0] == "" {
		return launchFailure(errors.New("there is no command to execute"))
	}
	if err := checkStatus(o.Status); err != nil {
		return launchFailure(err)
	}
	program, err := exec.LookPath(o.Argv[0])
	if err != nil {
		return executeFailure(err)
	}
	rules, err := launchRuleset(abi, o)
	if err != nil {
		return launchFailure(err)
	}
	defer rules.file.Close()
	if err := leaveBehind(); err != nil {
		return launchFailure(err)
	}
	err = onRestrictedThread(rules, filterFor(launchMode(o)), func() error {
		if err := sayLaunch(launchFacts(abi), o.Status); err != nil {
			return launchFailure(err)
		}
		err := syscall.Exec(program, o.Argv, os.Environ())
		return executeFailure(&os.PathError{Op: "execute", Path: program, Err: err})
	})
	if _, told := errors.AsType[*LaunchError](err); told {
		return err
	}
	return launchFailure(err)
}

// launchMode is the mode whose filter is wanted.
func launchMode(o LaunchOptions) policy.Mode {
	if o.DenyMetadata {
		return policy.ReadOnly
	}
	return policy.WorkspaceWrite
}

func launchRuleset(abi int, o LaunchOptions) (*ruleset, error) {
	file, err := createRuleset(handledRights(abi))
	if err != nil {
		return nil, err
	}
	readable := o.Readable
	if len(readable) == 0 {
		readable = []string{"/"}
	}
	for _, step := range []struct {
		paths  []string
		use    string
		rights uint64
	}{{readable, "reading", readRights}, {o.Writable, "writing", directoryRights(abi)}} {
		for _, path := range step.paths {
			if err := grantNamed(file, path, step.rights); err != nil {
				file.Close()
				return nil, fmt.Errorf("allow %s of %q: %w", step.use, path, err)
			}
		}
	}
	return &ruleset{file: file}, nil
}

// grantNamed grants rights to what path names, links followed: whoever calls
// the launcher says what he means. For what is no directory only those count
// that mean something there.
func grantNamed(ruleset *os.File, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if !isDirectory(st.Mode) {
		rights &= fileRights
	}
	return allowBeneath(ruleset, fd, rights)
}

// leaveBehind gives up what the command must not get of this process.
func leaveBehind() error {
	if _, err := unix.Setsid(); err != nil && err != unix.EPERM { // it leads a group
		return &setupError{"begin a session", err}
	}
	if err := dropCores(0); err != nil {
		return &setupError{"set the core size to 0", err}
	}
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return &setupError{"close inherited descriptors (close_range)", err}
	}
	return nil
}

// checkStatus accepts a descriptor that this process was given; its own ones
// close on exec.
func checkStatus(fd int) error {
	switch {
	case fd == 0:
		return nil
	case fd < 3:
		return fmt.Errorf("the status descriptor is %d; want 3 or higher, the streams are the command's", fd)
	case closesOnExec(fd):
		return fmt.Errorf("the status descriptor %d is not open; hand on one that can be written to", fd)
	}
	return nil
}

// sayLaunch tells what is enforced: always on the status descriptor, and
// without one on stderr if it is not all.
func sayLaunch(facts LaunchFacts, status int) error {
	line := facts.String()
	if status == 0 {
		if len(facts.Ungoverned) == 0 {
			return nil
		}
		status, line = unix.Stderr, LaunchNotice
	}
	for text := []byte(line + "\n"); len(text) > 0; {
		n, err := unix.Write(status, text)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("say on descriptor %d what is enforced: %w", status, err)
		}
		text = text[max(n, 0):]
	}
	return nil
}
