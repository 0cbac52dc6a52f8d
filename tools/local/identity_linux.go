package local

import (
	"io/fs"
	"syscall"
)

// identify returns what the file system alone knows of a file.
func identify(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{
		known: true, dev: uint64(st.Dev), ino: st.Ino, links: uint64(st.Nlink),
		uid: int(st.Uid), gid: int(st.Gid), ctime: st.Ctim.Nano(),
	}
}
