//go:build unix

package sandbox

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// hostCouldWrite reports whether this process, unconfined, may write the file,
// create what is missing of it, or, with remove, take it out of its directory.
func hostCouldWrite(path string, remove bool) bool {
	there := existing(path)
	switch {
	case there != path:
		return unix.Access(there, unix.W_OK|unix.X_OK) == nil
	case remove:
		return unix.Access(filepath.Dir(path), unix.W_OK|unix.X_OK) == nil
	default:
		return unix.Access(path, unix.W_OK) == nil
	}
}

// hostCouldChangeMetadata reports whether this process may change the mode and
// the times of what path names.
func hostCouldChangeMetadata(path string) bool {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return false
	}
	return os.Geteuid() == 0 || int(st.Uid) == os.Geteuid() || unix.Access(path, unix.W_OK) == nil
}

// hostCouldRun reports whether this process may execute path, or whether it is
// missing.
func hostCouldRun(path string) bool {
	err := unix.Access(path, unix.X_OK)
	return err == nil || err == unix.ENOENT
}

func onSameDevice(a, b string) bool {
	var sa, sb unix.Stat_t
	return unix.Stat(existing(a), &sa) == nil && unix.Stat(existing(b), &sb) == nil && sa.Dev == sb.Dev
}
