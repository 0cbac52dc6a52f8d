package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dsh-run/dsh/policy"
)

// undoing takes back what was planted in one workspace and notes it.
type undoing struct {
	root string
	done []policy.Undone
	errs []error
}

// undo compares the present with before, in the order in which git would come
// upon things: the entry .git, then what it leads to.
func (u *undoing) undo(w *vcsWatch, before *vcsState) error {
	dir, err := os.OpenRoot(w.root)
	if err != nil {
		return err
	}
	defer dir.Close()
	now, err := w.look()
	if err != nil {
		return err
	}
	u.entry(dir, before, now)
	for i, name := range w.files {
		u.file(dir, name, before.files[i], now.files[i], "a protected file")
	}
	if len(u.done) > 0 {
		if now, err = w.look(); err != nil {
			return errors.Join(append(u.errs, err)...)
		}
	}
	for _, is := range now.dirs {
		u.gitDir(before.gitDir(is.path), is)
	}
	w.last = now
	if len(u.done) > 0 {
		w.last = nil
	}
	return errors.Join(u.errs...)
}

// gitDir is what was known of a directory of git; of a new one, nothing.
func (s *vcsState) gitDir(path string) gitDirState {
	if i := slices.IndexFunc(s.dirs, func(d gitDirState) bool { return d.path == path }); i >= 0 {
		return s.dirs[i]
	}
	return gitDirState{path: path}
}

// entry sees to .git itself. A directory in the place of another is judged by
// what it holds.
func (u *undoing) entry(dir *os.Root, before, now *vcsState) {
	was, is := before.git, now.git
	switch {
	case was.same(is), is.kind == entryDirectory && (was.kind == entryDirectory || was.kind == entryMissing):
	case is.kind == entryMissing && was.kind == entryDirectory:
		u.moveBack(dir, was)
	case is.kind == entryMissing:
		u.restore(dir, gitName, was, "it was removed")
	case u.quarantine(dir, gitName, "it was made to lead elsewhere") && was.kind == entryDirectory:
		u.moveBack(dir, was)
	case was.kind != entryMissing && was.kind != entryDirectory:
		u.restore(dir, gitName, was, "")
	}
}

// moveBack looks for a directory that was moved away, in the root and one
// level below, and moves it back.
func (u *undoing) moveBack(dir *os.Root, was entryState) {
	found := ""
	_ = fs.WalkDir(dir.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil && os.SameFile(info, was.info) {
			found = path
			return fs.SkipAll
		}
		if strings.Contains(path, "/") {
			return fs.SkipDir
		}
		return nil
	})
	if found == "" || found == gitName {
		return
	}
	if err := dir.Rename(found, gitName); err != nil {
		u.failed(err)
		return
	}
	u.note(gitName, "it was moved to "+found+" and was moved back")
}

// gitDir sees to what git acts on in one of its directories.
func (u *undoing) gitDir(was, is gitDirState) {
	if slices.EqualFunc(was.entries(), is.entries(), entryState.same) && maps.EqualFunc(was.hooks, is.hooks, entryState.same) {
		return
	}
	dir, err := os.OpenRoot(is.path)
	if err != nil {
		u.failed(err)
		return
	}
	defer dir.Close()
	at := &undoing{root: is.path}
	for i, name := range leadNames {
		at.file(dir, name, was.leads[i], is.leads[i], "it leads git elsewhere")
	}
	for i, name := range configNames {
		at.config(dir, name, was.config[i], is.config[i])
	}
	at.hooks(dir, was, is)
	u.done, u.errs = append(u.done, at.done...), append(u.errs, at.errs...)
}

func (s gitDirState) entries() []entryState {
	return append(append([]entryState{s.hooksLink}, s.config[:]...), s.leads[:]...)
}

// file brings one file back to what it was.
func (u *undoing) file(dir *os.Root, name string, was, is entryState, why string) {
	if was.same(is) {
		return
	}
	gone := why
	if is.kind != entryMissing {
		if !u.quarantine(dir, name, why) {
			return
		}
		gone = "" // that says it
	}
	if was.kind != entryMissing {
		u.restore(dir, name, was, gone)
	}
}

// hooks takes back hooks that are new or were changed. A removed one is put
// back.
func (u *undoing) hooks(dir *os.Root, was, is gitDirState) {
	if !was.hooksLink.same(is.hooksLink) && is.hooksLink.kind != entryMissing && is.hooksLink.kind != entryDirectory {
		if !u.quarantine(dir, hooksName, "the directory of hooks was replaced") {
			return
		}
		is.hooks = nil
		if was.hooksLink.kind == entryLink {
			u.restore(dir, hooksName, was.hooksLink, "")
			return
		}
	}
	names := slices.Sorted(maps.Keys(was.hooks))
	for _, name := range slices.Sorted(maps.Keys(is.hooks)) {
		if _, known := was.hooks[name]; !known {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if was.hooks[name].same(is.hooks[name]) {
			continue
		}
		if _, err := dir.Lstat(hooksName); err != nil {
			if err := dir.Mkdir(hooksName, 0o755); err != nil {
				u.failed(err)
				return
			}
		}
		u.file(dir, hooksName+"/"+name, was.hooks[name], is.hooks[name], "a hook of git runs outside of the sandbox")
	}
}

// config takes back the entries that execute. A file that cannot be read as
// git reads it is taken back as a whole.
func (u *undoing) config(dir *os.Root, name string, was, is entryState) {
	if was.same(is) || is.kind == entryMissing {
		return
	}
	unlock := lockConfig(dir, name)
	defer unlock()
	is = readEntry(dir, name, entryState{}) // a host's git may have been faster
	const unreadable = "it cannot be read as git's configuration"
	after, err := parseConfig(is.content)
	if is.kind != entryRegular || err != nil {
		u.file(dir, name, was, is, unreadable)
		return
	}
	before, err := parseConfig(was.content)
	if err != nil {
		// It was unreadable before, and git does nothing with such a file.
		u.file(dir, name, was, is, unreadable)
		return
	}
	text, keys := revertConfig(before, after)
	if keys == nil {
		return
	}
	if err := replaceFile(dir, name, text, is); err != nil {
		u.failed(err)
		return
	}
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.String()
	}
	u.note(name, "reverted, since git would execute or follow it: "+strings.Join(names, ", "))
}

// lockWait is how long another git may hold the lock; a lock that stays is not
// one.
const lockWait = 200 * time.Millisecond

// lockConfig keeps a git of the host from writing the file at the same time.
func lockConfig(dir *os.Root, name string) (unlock func()) {
	lock := name + ".lock"
	for end := time.Now().Add(lockWait); ; time.Sleep(5 * time.Millisecond) {
		file, err := dir.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			file.Close()
			return func() { _ = dir.Remove(lock) }
		}
		if !errors.Is(err, fs.ErrExist) || time.Now().After(end) {
			return func() {}
		}
	}
}

// quarantine is where planted things go: into a directory that nothing looks
// at, without the right to be executed.
func (u *undoing) quarantine(dir *os.Root, name, why string) bool {
	const box = "dsh-quarantine"
	home := box
	if filepath.Dir(name) == "." && name == gitName {
		home = "." + box // there is no .git to hold it
	}
	if err := dir.Mkdir(home, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		u.failed(err)
		return false
	}
	to := home + "/" + strconv.FormatInt(time.Now().UnixNano(), 10) + "-" + filepath.Base(name)
	if err := dir.Rename(name, to); err != nil {
		u.failed(err)
		return false
	}
	if info, err := dir.Lstat(to); err == nil && info.Mode().IsRegular() {
		_ = dir.Chmod(to, info.Mode().Perm()&^0o111)
	}
	u.note(name, why+"; it is now "+filepath.Join(u.root, to))
	return true
}

// restore makes name what it was.
func (u *undoing) restore(dir *os.Root, name string, was entryState, why string) {
	var err error
	switch was.kind {
	case entryRegular:
		err = replaceFile(dir, name, was.content, was)
	case entryLink:
		err = dir.Symlink(was.target, name)
	case entryDirectory:
		return // its content is somewhere in the workspace, or was removed
	default:
		err = fmt.Errorf("%s was no file whose content is known, and cannot be put back", filepath.Join(u.root, name))
	}
	if err != nil {
		u.failed(err)
		return
	}
	if why != "" {
		u.note(name, why+"; it was put back")
	}
}

func (u *undoing) note(name, what string) {
	u.done = append(u.done, policy.Undone{Path: filepath.Join(u.root, filepath.FromSlash(name)), What: what})
}

func (u *undoing) failed(err error) { u.errs = append(u.errs, err) }

// replaceFile puts a file with that content and the mode and owner of was in
// the place of name, in one step.
func replaceFile(dir *os.Root, name string, content []byte, was entryState) (err error) {
	temp := name + ".dsh-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = dir.Remove(temp)
		}
	}()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Chmod(was.mode.Perm()), file.Close()); err != nil {
		return err
	}
	keepOwner(dir, temp, was.info)
	return dir.Rename(temp, name)
}
