package sandbox

import (
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func hasDeathSignal(attr *syscall.SysProcAttr) bool { return attr.Pdeathsig != 0 }

// dropCores sets the core size of a process that was just started to 0. The
// limit belongs to whole processes, so it cannot be set on a thread before; a
// core of the first microseconds is written under the process's own rights.
func dropCores(pid int) error {
	return unix.Prlimit(pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
}

// inheritable is the highest descriptor from 3 on that a started process would
// inherit, or 0.
func inheritable() int {
	dir, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return inheritableWithoutProc()
	}
	defer unix.Close(dir)
	highest := 0
	buf := make([]byte, 4096)
	for {
		n, err := unix.ReadDirent(dir, buf)
		if err != nil {
			return inheritableWithoutProc()
		}
		if n <= 0 {
			return highest
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			if fd, err := strconv.Atoi(name); err == nil && fd > max(2, highest) && !closesOnExec(fd) {
				highest = fd
			}
		}
	}
}

// inheritableWithoutProc looks at every descriptor that the limit allows, up
// to a bound that keeps a start affordable.
func inheritableWithoutProc() int {
	var limit unix.Rlimit
	highest, bound := 0, 1<<16
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil && limit.Cur < uint64(bound) {
		bound = int(limit.Cur)
	}
	for fd := 3; fd < bound; fd++ {
		if !closesOnExec(fd) {
			highest = fd
		}
	}
	return highest
}

func (t *Tree) wait() (leftovers int, err error) {
	awaitExit(t.cmd.Process.Pid)
	// The process is dead and not yet reaped: neither its number nor its
	// group's can be reused while what is left is looked for.
	leftovers = t.endLeftovers()
	t.finish()
	return leftovers, t.cmd.Wait()
}

// awaitExit returns when the process has ended and leaves it to be reaped.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// endLeftovers ends what outlived the started process and counts it.
func (t *Tree) endLeftovers() int {
	t.mu.Lock()
	left := t.family.find(afterExit)
	t.mu.Unlock()
	if len(left) == 0 {
		return 0
	}
	deadline, killing := t.killTime()
	if !killing {
		deadline = time.Now().Add(leftoverGrace)
		t.mu.Lock()
		t.family.terminate()
		t.mu.Unlock()
	}
	for time.Now().Before(deadline) && t.anyLeft() {
		awaitEnd(left, time.Until(deadline))
		if at, killing := t.killTime(); killing && at.Before(deadline) {
			deadline = at
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.family.kill()
	return t.family.ended()
}

func (t *Tree) anyLeft() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.family.find(afterExit)) > 0
}
