package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dsh-run/dsh/tools"
)

// openDirectory opens the directory at a canonical path without following a
// link anywhere on the way: where one has been put since the path was
// resolved, it fails. All that follows happens relative to what it returns,
// so no later exchange of names leads elsewhere.
func openDirectory(path string) (*os.Root, error) {
	if dir, ok, err := openDirectoryAtOnce(path); ok {
		return dir, err
	}
	dir, err := os.OpenRoot(volumeRoot(path))
	for _, name := range components(path) {
		if err != nil {
			return nil, err
		}
		dir, err = descend(dir, name)
	}
	return dir, err
}

// descend opens a directory below dir, which it closes.
func descend(dir *os.Root, name string) (*os.Root, error) {
	defer dir.Close()
	want, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if err := sameDirectory(next, want); err != nil {
		next.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return next, nil
}

// errSwapped says that a name no longer leads where it did when the path was
// judged.
var errSwapped = errors.New("a directory on the way was exchanged while the call ran")

func sameDirectory(dir *os.Root, want fs.FileInfo) error {
	got, err := dir.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(got, want) {
		return errSwapped
	}
	return nil
}

// openParent opens the directory that holds t, and makes what is missing of
// it when create is set.
func openParent(t target, create bool) (*os.Root, error) {
	parent := filepath.Dir(t.path)
	if !create || t.exists() || t.base == parent {
		dir, err := openDirectory(parent)
		return dir, swapFailure(t.path, err)
	}
	dir, err := openDirectory(t.base)
	missing, relErr := filepath.Rel(t.base, parent)
	if relErr != nil {
		panic("local: a target's base is not its ancestor")
	}
	for _, name := range components(string(filepath.Separator) + missing) {
		if err != nil {
			break
		}
		if err = dir.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			dir.Close()
			break
		}
		dir, err = descend(dir, name)
	}
	return dir, swapFailure(t.path, err)
}

// swapFailure words an error of walking to path.
func swapFailure(path string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, errSwapped) || isLoop(err) {
		return &tools.Error{Code: IOError, Message: shownPath(path) + ": " + errSwapped.Error(), Retryable: true}
	}
	return osFailure(path, err)
}

// openFile opens the regular file that t leads to, for reading, without
// waiting for anything.
func openFile(t target) (*os.File, error) {
	if err := irregular(t.path, t.info.Mode()); err != nil {
		return nil, err
	}
	dir, err := openParent(t, false)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return openIn(dir, t)
}

// openIn opens what lies under t's name in dir.
func openIn(dir *os.Root, t target) (*os.File, error) {
	base := filepath.Base(t.path)
	info, err := dir.Lstat(base)
	if err != nil {
		return nil, osFailure(t.path, err)
	}
	if err := irregular(t.path, info.Mode()); err != nil {
		return nil, err
	}
	f, err := dir.OpenFile(base, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, osFailure(t.path, err)
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(info, opened) {
		err = &tools.Error{Code: IOError, Message: shownPath(t.path) + ": the file was exchanged while it was opened", Retryable: true}
	}
	if err != nil {
		f.Close()
		return nil, osFailure(t.path, err)
	}
	// A file that can be waited for, such as a kernel log, says so by taking
	// the deadline; for an ordinary one this has no effect.
	_ = f.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	return f, nil
}
