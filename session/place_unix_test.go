//go:build unix

package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/session/sessiontest"
)

func TestALogBehindALinkedDirectoryIsSynced(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		sessiontest.Need(t, "symlinks", false, err.Error())
	}
	log, err := session.Create(filepath.Join(link, "s.jsonl"), "/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	put(t, log, "x")
	if err := log.Sync(); err != nil {
		t.Error(err)
	}
	if got, err := filepath.EvalSymlinks(log.TempDir()); err != nil || got != log.TempDir() {
		t.Errorf("the temporary directory is called %s, which leads to %s, %v", log.TempDir(), got, err)
	}
	if err := session.Fork(log.Path(), 1, filepath.Join(link, "fork.jsonl")); err != nil {
		t.Error(err)
	}
}

func TestALogThatWasRemovedIsNotSynced(t *testing.T) {
	for _, c := range []struct {
		name    string
		disturb func(path string) error
		removed bool
	}{
		{"removed", os.Remove, true},
		{"replaced by another file", func(path string) error {
			other := filepath.Join(filepath.Dir(path), "other")
			return errors.Join(os.WriteFile(other, nil, 0o600), os.Rename(other, path))
		}, true},
		{"renamed", func(path string) error { return os.Rename(path, path+".1") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := create(t)
			if err := c.disturb(log.Path()); err != nil {
				t.Fatal(err)
			}
			err := log.Sync()
			if removed := (*session.RemovedError)(nil); errors.As(err, &removed) != c.removed || !c.removed && err != nil {
				t.Errorf("the sync gave %v", err)
			}
		})
	}
}

func TestAFolderOfOthersIsNotUsedForANewLog(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(folder string) error
		root bool   // only root can make it
		why  string // empty: the log is made
	}{
		{"one that others can enter", func(d string) error { return errors.Join(os.Mkdir(d, 0o700), os.Chmod(d, 0o755)) }, false, "open to other users (mode 0755)"},
		{"one in which others can enter the blobs", func(d string) error {
			blobs := filepath.Join(d, "blobs")
			return errors.Join(os.MkdirAll(blobs, 0o700), os.Chmod(blobs, 0o777))
		}, false, "open to other users (mode 0777)"},
		{"a link to one", func(d string) error { return os.Symlink(filepath.Dir(d), d) }, false, "is not a directory"},
		{"an owner-only one of this user", func(d string) error { return os.Mkdir(d, 0o700) }, false, ""},
		{"one of another user", func(d string) error {
			return errors.Join(os.Mkdir(d, 0o700), os.Chown(d, 65534, 65534))
		}, true, "belongs to user 65534"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sessiontest.Need(t, "root", !c.root || os.Geteuid() == 0, "a directory cannot be given away")
			path := filepath.Join(t.TempDir(), "s.jsonl")
			if err := c.make(session.Folder(path)); err != nil {
				t.Fatal(err)
			}
			log, err := session.Create(path, "/w", nil)
			if err == nil {
				log.Close()
			}
			place := (*session.PlaceError)(nil)
			if c.why == "" && err != nil || c.why != "" && (!errors.As(err, &place) || !strings.Contains(err.Error(), c.why)) {
				t.Errorf("the log gave %v, want an error with %q", err, c.why)
			}
			if _, err := os.Lstat(path); c.why != "" && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a refused log left its file: %v", err)
			}
		})
	}
}
