//go:build unix

package sandbox

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// hostCouldWrite reports whether this process, unconfined, may have that effect
// on path.
func hostCouldWrite(path string, how effect) bool {
	there := existing(path)
	removes := how == removePath || how == removeDir
	switch {
	case madeByKernel(there):
		info, err := os.Stat(path)
		return err == nil && !removes && info.Mode().Perm()&0o222 != 0 && unix.Access(path, unix.W_OK) == nil
	case there != path:
		return (how == makePath || there == filepath.Dir(path)) && isDir(there) && unix.Access(there, unix.W_OK|unix.X_OK) == nil
	case how == removeDir && isFull(path):
		return false
	case removes:
		return unix.Access(filepath.Dir(path), unix.W_OK|unix.X_OK) == nil
	default:
		return unix.Access(path, unix.W_OK) == nil
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isFull reports a directory that is not empty, which nobody can remove at
// once.
func isFull(path string) bool {
	dir, err := os.Open(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(1)
	return len(names) > 0
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

// hostNeedsPrivilege reports whether root may open path only because it is
// privileged: the mode of the file, or of a directory on the way, does not let
// its user.
func hostNeedsPrivilege(path string) bool {
	if os.Geteuid() != 0 || madeByKernel(existing(path)) {
		return false
	}
	for at := path; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Stat(at, &st); err == unix.ENOENT && at == path {
			continue // it was to be created
		} else if err != nil {
			return false
		}
		mode := uint32(st.Mode)
		if st.Uid == 0 {
			mode >>= 6
		} else if st.Gid == 0 {
			mode >>= 3
		}
		switch isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR; {
		case isDir && mode&1 == 0, at == path && (mode&4 == 0 || mode&2 == 0), at == filepath.Dir(path) && mode&2 == 0:
			return true
		case at == filepath.Dir(at):
			return false
		}
	}
}
