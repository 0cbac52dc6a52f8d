package runtime

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// parentFD is where a worker finds its socket.
const parentFD = 3

// helloPatience is how long a worker waits for its parent's first frame, which
// a real parent has sent before it started the worker.
const helloPatience = 2 * time.Second

// parentConn is the worker's end of the socket pair, watched by Go's poller:
// on one processor the same thread then reads, runs the program and writes.
type parentConn struct {
	*os.File
	reader *frameReader
}

var errNotAWorker = errors.New("the variable " + workerEnv + " is for the worker processes of dsh-run and set by them alone: unset it")

// adoptParent checks that a parent has asked for this worker and returns what
// must be said back.
func adoptParent() (parentConn, []byte, error) {
	if os.Getenv(workerEnv) != workerProtocol {
		return parentConn{}, nil, fmt.Errorf("%w (this worker speaks version %s)", errNotAWorker, workerProtocol)
	}
	_ = os.Unsetenv(workerEnv)
	domain, err1 := unix.GetsockoptInt(parentFD, unix.SOL_SOCKET, unix.SO_DOMAIN)
	kind, err2 := unix.GetsockoptInt(parentFD, unix.SOL_SOCKET, unix.SO_TYPE)
	if err1 != nil || err2 != nil || domain != unix.AF_UNIX || kind != unix.SOCK_STREAM {
		return parentConn{}, nil, fmt.Errorf("%w (descriptor %d is no socket of a parent)", errNotAWorker, parentFD)
	}
	if err := unix.SetNonblock(parentFD, true); err != nil {
		return parentConn{}, nil, err
	}
	conn := parentConn{File: os.NewFile(parentFD, "parent")}
	conn.reader = newFrameReader(conn, idleFrame)
	if err := conn.SetReadDeadline(time.Now().Add(helloPatience)); err != nil {
		return parentConn{}, nil, err
	}
	f, err := conn.reader.next()
	if err != nil || f.kind != frameHello || len(f.body) != helloBytes {
		return parentConn{}, nil, fmt.Errorf("%w (nobody greeted it)", errNotAWorker)
	}
	hello := append([]byte{}, f.body...)
	return conn, hello, conn.SetReadDeadline(time.Time{})
}

// exitNow ends the process without running anything more of it.
func exitNow(code int) { unix.Exit(code) }

// cpuTime is the processor time that this process has used.
func cpuTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
