package local

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsh-run/dsh/tools"
)

// publication is the new content of one file, and what it replaces.
type publication struct {
	target
	content []byte
	// before is the file that is replaced, as it was when its content was
	// read. Nil: the file must not exist.
	before fs.FileInfo
}

// run puts the content in place at once: nobody ever sees a part of it, and an
// error leaves everything as it was.
func (p publication) run(ctx context.Context) (fs.FileInfo, error) {
	dir, err := openParent(p.target, true)
	if err != nil {
		p.removeMade()
		return nil, p.failure(err)
	}
	defer dir.Close()
	info, err := p.into(ctx, dir)
	if err != nil {
		p.removeMade()
		return nil, p.failure(err)
	}
	syncDirectory(dir)
	return info, nil
}

func (p publication) into(ctx context.Context, dir *os.Root) (fs.FileInfo, error) {
	temp := ".dsh-" + rand.Text() + ".tmp"
	info, err := p.prepare(dir, temp)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = p.rename(dir, temp)
	}
	if err != nil {
		_ = dir.Remove(temp) // the error that led here says more
		return nil, err
	}
	return info, nil
}

// prepare writes the content under a name of its own, down to the disk.
func (p publication) prepare(dir *os.Root, temp string) (fs.FileInfo, error) {
	mode := fs.FileMode(0o666)
	if p.before != nil {
		mode = 0o600
	}
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(p.content)
	if err == nil && p.before != nil {
		err = likeBefore(f, p.before)
	}
	if err == nil {
		err = f.Sync()
	}
	var info fs.FileInfo
	if err == nil {
		info, err = f.Stat()
	}
	return info, errors.Join(err, f.Close())
}

// likeBefore gives f the mode and the group of the file it replaces. The
// thread that runs it may be kept from changing such things, so another one
// does: f is new and belongs to this call.
func likeBefore(f *os.File, before fs.FileInfo) error {
	done := make(chan error)
	go func() {
		err := keepGroup(f, before)
		if err == nil {
			err = f.Chmod(before.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky))
		}
		done <- err
	}()
	return <-done
}

func keepGroup(f *os.File, before fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	want, is := identify(before), identify(now)
	if !want.known || want.gid == is.gid {
		return nil
	}
	return f.Chown(-1, want.gid)
}

// rename publishes what was prepared, unless something else happened to the
// file meanwhile.
func (p publication) rename(dir *os.Root, temp string) error {
	base := filepath.Base(p.path)
	if p.before == nil {
		err := renameNoReplace(dir, temp, base)
		if errors.Is(err, fs.ErrExist) {
			return fail(StaleVersion, "%s was made by someone else meanwhile; read it before you write it", shownPath(p.path))
		}
		return err
	}
	now, err := dir.Lstat(base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !sameState(now, p.before) {
		return stale(p.path)
	}
	return dir.Rename(temp, base)
}

// sameState reports whether two looks at a file show no sign of a change.
func sameState(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) &&
		identify(a).ctime == identify(b).ctime
}

func stale(path string) error {
	return fail(StaleVersion, "%s has changed since it was read; read it again, then repeat the change", shownPath(path))
}

// linkNoReplace publishes temp under a name that must be free.
func linkNoReplace(dir *os.Root, temp, base string) error {
	if err := dir.Link(temp, base); err != nil {
		return err
	}
	return dir.Remove(temp)
}

// syncDirectory makes a rename durable where a directory can be synced. The
// file is complete under its name already.
func syncDirectory(dir *os.Root) {
	if f, err := dir.Open("."); err == nil {
		_ = f.Sync()
		f.Close()
	}
}

// removeMade removes the directories that were made for a file which could not
// be written, as far as they are empty.
func (p publication) removeMade() {
	parent := filepath.Dir(p.path)
	if p.exists() || p.base == parent {
		return
	}
	base, err := openDirectory(p.base)
	if err != nil {
		return
	}
	defer base.Close()
	for made := filepath.Dir(tail(p.target)); made != "."; made = filepath.Dir(made) {
		if base.Remove(made) != nil {
			return
		}
	}
}

// failure words what went wrong.
func (p publication) failure(err error) error {
	var typed *tools.Error
	if errors.As(err, &typed) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, fs.ErrPermission) && p.before != nil {
		return fail(PermissionDenied, "%s: %s; a file is changed by replacing it, which needs a directory that can be written: %s",
			shownPath(p.path), osReason(err), shownPath(filepath.Dir(p.path)))
	}
	return osFailure(p.path, err)
}

// replaceable says why the file cannot be replaced without losing something
// that a new file cannot have.
func replaceable(path string, info fs.FileInfo) error {
	id, self := identify(info), os.Geteuid()
	switch {
	case id.known && id.links > 1:
		return fail(PermissionDenied, "%s has %d hard links, and changing it here would leave the others as they are; change it with a command that writes in place", shownPath(path), id.links)
	case id.known && id.uid != self:
		return fail(PermissionDenied, "%s belongs to user %d, and a changed file would belong to user %d; change it with a command that writes in place", shownPath(path), id.uid, self)
	case info.Mode()&0o200 == 0 && self != 0:
		return fail(PermissionDenied, "%s is read-only (mode %s)", shownPath(path), strings.TrimPrefix(info.Mode().String(), "-"))
	}
	return nil
}
