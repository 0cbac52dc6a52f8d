package sandbox

import "golang.org/x/sys/unix"

// onReadOnlyFileSystem reports whether path lies on a file system that is
// mounted read-only, which refuses writes to everyone.
func onReadOnlyFileSystem(path string) bool {
	var st unix.Statfs_t
	if unix.Statfs(existing(path), &st) != nil {
		return true
	}
	return st.Flags&unix.MS_RDONLY != 0
}
