//go:build unix

package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// pairFlags: links are refused, and a pipe never blocks.
const pairFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

const pipesWork = true

// notOursAlone says why somebody else could write here; empty: nobody could.
func notOursAlone(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(stat.Uid) != os.Geteuid():
		return "it does not belong to this user"
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Sprintf("its mode is %04o, so others can write there; take the right from group and others", info.Mode().Perm())
	}
	return ""
}

// tryRead reads what a pipe holds: 0, nil means nothing.
func (p *pairFile) tryRead(b []byte) (int, error) { return p.try(unix.Read, b, false) }

// tryWrite writes what there is room for: 0, nil means nothing.
func (p *pairFile) tryWrite(b []byte) (int, error) { return p.try(unix.Write, b, true) }

// try makes one system call that does not wait.
func (p *pairFile) try(call func(int, []byte) (int, error), b []byte, write bool) (n int, err error) {
	conn, err := p.file.SyscallConn()
	if err != nil {
		return 0, err
	}
	once := func(fd uintptr) bool {
		n, err = call(int(fd), b)
		return true
	}
	run := conn.Read
	if write {
		run = conn.Write
	}
	if connErr := run(once); connErr != nil {
		return 0, connErr
	}
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return 0, nil
	}
	if err != nil {
		return 0, &FilePairError{p.path, err.Error()}
	}
	return n, nil
}
