//go:build unix

package session

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const noFollow = unix.O_NOFOLLOW

// lock keeps a second writer out for as long as f is open.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return &LockedError{Path: f.Name()}
	}
	return err
}

// unname removes the file's name; the open file stays.
func unname(path string) error { return os.Remove(path) }
