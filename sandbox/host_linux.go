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

// madeByKernel reports a path on a file system whose files are the kernel's:
// nothing can be created there, and modes say what is possible.
func madeByKernel(path string) bool {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return false
	}
	switch int64(st.Type) {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.SECURITYFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.BPF_FS_MAGIC:
		return true
	}
	return false
}
