//go:build unix

package session

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	noFollow = unix.O_NOFOLLOW
	// noWait keeps the opening of a pipe from waiting for its other end.
	noWait = unix.O_NONBLOCK
)

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

// syncFile brings the file's content to the disk.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncDir brings the directory's names to the disk.
func syncDir(path string) error { return syncFile(path) }
