package runtime

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// selfExe is this program, also after its file was replaced or deleted.
const selfExe = "/proc/self/exe"

// socketPair returns the parent's end, which Go's poller watches, and the
// worker's, which blocks.
func socketPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "worker"), os.NewFile(uintptr(fds[1]), "parent"), nil
}

// quiet says whether an idle worker lives and has said nothing more.
func (c *child) quiet() bool {
	if c.in.buffered() || c.in.end > c.in.start {
		return false
	}
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return false
	}
	waiting := false
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		_, _, err := unix.Recvfrom(int(fd), one[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		waiting = err == unix.EAGAIN
	})
	return err == nil && waiting
}

// The memory that a Go program needs beside its heap: stacks, the collector's
// own, and the steps in which the heap grows.
const memorySlack = 48 << 20

// limitProcess sets the kernel's limits of a worker that needed base when it
// was ready.
func limitProcess(pid int, limits Limits, base memoryStatus) error {
	cpu := uint64(limits.processor() / time.Second)
	data := uint64(base.data) + uint64(limits.Memory) + memorySlack
	for _, l := range []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_DATA, data},
		{unix.RLIMIT_CPU, cpu}, // soft and hard alike: Go programs ignore SIGXCPU
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_NOFILE, 16},
	} {
		if err := unix.Prlimit(pid, l.resource, &unix.Rlimit{Cur: l.most, Max: l.most}, nil); err != nil {
			return fmt.Errorf("set resource limit %d of the worker: %w", l.resource, err)
		}
	}
	return nil
}

func readMemory(pid int) (memoryStatus, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return memoryStatus{}, err
	}
	return parseMemory(text)
}

func parseMemory(text []byte) (memoryStatus, error) {
	var m memoryStatus
	for line := range bytes.Lines(text) {
		name, rest, _ := strings.Cut(string(line), ":")
		var field *int64
		switch name {
		case "VmData":
			field = &m.data
		case "VmRSS":
			field = &m.resident
		case "VmHWM":
			field = &m.peak
		default:
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return m, fmt.Errorf("%s is %q, a number of kB was expected", name, strings.TrimSpace(rest))
		}
		*field = kib << 10
	}
	if m.data == 0 || m.resident == 0 {
		return m, fmt.Errorf("VmData and VmRSS are missing")
	}
	return m, nil
}

func deathOf(state *os.ProcessState) death {
	if state == nil {
		return death{code: -1, signal: "unknown"}
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return death{code: state.ExitCode()}
	}
	return death{code: -1, signal: status.Signal().String(), used: state.UserTime() + state.SystemTime()}
}
