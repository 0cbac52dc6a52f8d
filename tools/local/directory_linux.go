package local

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	nonBlocking = unix.O_NONBLOCK
	noFollow    = unix.O_NOFOLLOW
)

func isLoop(err error) bool { return errors.Is(err, unix.ELOOP) }

// openDirectoryAtOnce lets the kernel refuse links, in one system call. ok is
// false where it does not know how to.
func openDirectoryAtOnce(path string) (dir *os.Root, ok bool, err error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, &os.PathError{Op: "open", Path: path, Err: err}
	}
	pinned := os.NewFile(uintptr(fd), path)
	defer pinned.Close()
	want, err := pinned.Stat()
	if err != nil {
		return nil, true, err
	}
	dir, err = os.OpenRoot(path)
	if err != nil {
		return nil, true, err
	}
	if err := sameDirectory(dir, want); err != nil {
		dir.Close()
		return nil, true, err
	}
	return dir, true, nil
}
