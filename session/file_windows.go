package session

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

const noFollow, noWait = 0, 0

// lock keeps a second writer out for as long as f is open. It locks a byte far
// behind the end, so that readers are not kept out.
func lock(f *os.File) error {
	at := &windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return &LockedError{Path: f.Name()}
	}
	return err
}

// unname leaves the name: an open file cannot be without one here.
func unname(string) error { return nil }

// syncFile brings the file's content to the disk.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncDir does nothing: the file system writes its names in order.
func syncDir(string) error { return nil }

// isNameless is false: a file that is open cannot be removed here.
func isNameless(*os.File) bool { return false }

// private accepts any directory: who may use it is inherited here.
func private(string, fs.FileInfo) error { return nil }
