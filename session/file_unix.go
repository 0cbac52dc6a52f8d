//go:build unix

package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

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

// syncDir brings the directory's names to the disk. The path may lead to it
// over symbolic links, as that of a log's file may.
func syncDir(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// isNameless says that the open file has lost its last name.
func isNameless(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}

// private says why a directory that was there already is not this user's alone.
func private(dir string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s is there already and open to other users (mode %#o); remove it or make it owner-only", dir, mode)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is there already and belongs to user %d; remove it or choose another log", dir, stat.Uid)
	}
	return nil
}
