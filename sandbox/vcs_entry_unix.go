//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"syscall"
)

// nonblocking keeps an open of what became a pipe from waiting.
const nonblocking = syscall.O_NONBLOCK

func stampOf(info fs.FileInfo) stamp {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}
	}
	return stamp{identity{uint64(st.Dev), uint64(st.Ino)}, st.Size, changeTime(st)}
}

// keepOwner gives a file that replaces another one its owner, where this
// process may.
func keepOwner(dir *os.Root, name string, was fs.FileInfo) {
	if was == nil || os.Geteuid() != 0 {
		return
	}
	if st, ok := was.Sys().(*syscall.Stat_t); ok {
		_ = dir.Lchown(name, int(st.Uid), int(st.Gid))
	}
}
