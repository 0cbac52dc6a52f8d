package local

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNoReplace renames within dir and fails when base exists.
func renameNoReplace(dir *os.Root, temp, base string) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.Renameat2(int(f.Fd()), temp, int(f.Fd()), base, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return linkNoReplace(dir, temp, base)
	}
	if err != nil {
		return &os.LinkError{Op: "rename", Old: temp, New: base, Err: err}
	}
	return nil
}
