//go:build unix

package sandbox

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// programNamesAreExact: no extension is added to a program's name.
const programNamesAreExact = true

// checkAttributes refuses what contradicts a session of its own.
func checkAttributes(attr *syscall.SysProcAttr) error {
	switch {
	case attr == nil:
		return nil
	case attr.Setpgid || attr.Foreground:
		return &CommandError{"it asks for a process group or the foreground (Setpgid, Foreground); it gets a session of its own"}
	case hasDeathSignal(attr):
		return &CommandError{"it asks for a death signal (Pdeathsig); that would follow the thread that forked, which ends right after the start"}
	}
	return nil
}

// prepareCommand gives cmd its own session and keeps the descriptors that this
// process inherited from it.
func prepareCommand(cmd *exec.Cmd) {
	attr := syscall.SysProcAttr{}
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	attr.Setsid = true
	cmd.SysProcAttr = &attr
	cmd.ExtraFiles = closing(cmd.ExtraFiles, inheritable())
}

// closing makes a start close, besides handing on files, the descriptors up to
// highest in the child: a nil file is one to close. What this process opens by
// itself closes on exec anyway; what its own parent left open does not.
func closing(files []*os.File, highest int) []*os.File {
	all := make([]*os.File, max(len(files), highest-2))
	copy(all, files)
	return all
}

// closesOnExec reports whether the descriptor is closed in what is started, or
// is not open at all.
func closesOnExec(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err != nil || flags&unix.FD_CLOEXEC != 0
}
