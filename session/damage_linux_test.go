package session_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/session"
)

const nobody = 65534

// asNobody runs f without the rights of root, which files that cannot be
// written do not stop. The files of dir become nobody's.
func asNobody(t *testing.T, dir string, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chown(path, nobody, nobody))
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread ends with the goroutine and takes its rights along.
		goruntime.LockOSThread()
		if _, err := unix.SetfsuidRetUid(nobody); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}

// What cannot be written is not opened for writing, is unchanged, and can be
// read.
func TestWhatCannotBeWrittenIsNotContinued(t *testing.T) {
	const torn = `{"seq":3`
	inFolder := func(name string) func(string) string {
		return func(path string) string { return filepath.Join(session.Folder(path), name) }
	}
	for _, c := range []struct {
		name   string
		closed func(path string) string // what becomes read-only
		bare   bool                     // the session's folder is gone
		end    string                   // behind the last event
		why    string
	}{
		{"a read-only file", func(path string) string { return path }, false, torn, "permission denied"},
		{"a folder in which the session's own cannot be made", filepath.Dir, true, torn, "permission denied"},
		{"a folder in which nothing can be set aside", inFolder("blobs"), false, torn, "nothing can be written to its folder"},
		{"a whole log with a folder that takes no blobs", inFolder("blobs"), false, "", "nothing can be written to its folder"},
		{"a whole log with a folder that takes no long output", inFolder("spill"), false, "", "nothing can be written to its folder"},
		{"a whole log with a temporary directory that takes no files", inFolder("tmp"), false, "", "nothing can be written to its folder"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "s.jsonl")
			log, err := session.Create(path, "/w", nil)
			if err != nil {
				t.Fatal(err)
			}
			add(t, log, "a")
			log.Close()
			raw := appendTo(t, path, c.end)
			if c.bare {
				if err := os.RemoveAll(log.Dir()); err != nil {
					t.Fatal(err)
				}
			}
			asNobody(t, dir, func() {
				unwritable(t, c.closed(path))
				var open *session.OpenError
				if _, err := session.Open(path, nil); !errors.As(err, &open) || !strings.Contains(err.Error(), c.why) {
					t.Errorf("opening gave %v, want an OpenError with %q", err, c.why)
				}
				if notes, bad := survey(t, path); len(notes) != 1 || len(bad) != len(c.end)/len(torn) {
					t.Errorf("a survey gave %q, %v", notes, bad)
				}
			})
			if now, err := os.ReadFile(path); err != nil || string(now) != raw {
				t.Errorf("the log was changed, or %v", err)
			}
		})
	}
}

func unwritable(t *testing.T, path string) {
	info, err := os.Stat(path)
	if err != nil {
		t.Error(err)
		return
	}
	if err := os.Chmod(path, info.Mode().Perm()&^0o222); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() { os.Chmod(path, info.Mode().Perm()|0o200) })
}

// appendTo adds text to a file and returns what it holds then.
func appendTo(t *testing.T, path, text string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		raw = append(raw, text...)
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
