package session_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/session/sessiontest"
)

// small is a file system of a few pages, on which a log is to be.
type small struct {
	dir  string
	path string // of the log
}

func mountSmall(t *testing.T, options string) small {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, options)
	sessiontest.Need(t, "mount", err == nil, fmt.Sprintf("a small file system could not be mounted: %v", err))
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return small{dir, filepath.Join(dir, "s.jsonl")}
}

// fill leaves room for that many pages, and for more once the file that it
// returns is removed.
func (s small) fill(t *testing.T, pages int) string {
	t.Helper()
	path := filepath.Join(s.dir, "filler")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, os.Getpagesize())
	size := int64(0)
	for err == nil {
		if _, err = f.Write(page); err == nil {
			size += int64(len(page))
		}
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Truncate(size - int64(pages*len(page))); err != nil {
		t.Fatal(err)
	}
	return path
}

func (s small) create(t *testing.T) *session.Log {
	t.Helper()
	log, err := session.Create(s.path, "/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

func wantFull(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("the error is %v, want one of a full disk", err)
	}
}

func TestAFullDiskTakesBackTheEventThatDoesNotFit(t *testing.T) {
	s := mountSmall(t, "size=1m")
	log := s.create(t)
	filler := s.fill(t, 16)
	var want []string
	var err error
	for i := 0; err == nil; i++ {
		text := fmt.Sprint(i, strings.Repeat("x", 10_000))
		if _, err = log.Append(session.ProgramLog, note{text}); err == nil {
			want = append(want, text)
		}
	}
	wantFull(t, err)
	got, err := texts(s.path)
	if err != nil || !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("the full disk holds %d events, %v; want the %d that were acknowledged", len(got), err, len(want))
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	add(t, log, "later")
	log.Close()
	if got, err := texts(s.path); err != nil || !slices.Equal(got, append(want, "later")) {
		t.Errorf("with room again the log has %d events, %v; want %d", len(got), err, len(want)+1)
	}
}

func TestAnEventThatFitsIsAppendedAfterOneThatDoesNot(t *testing.T) {
	s := mountSmall(t, "size=1m")
	log := s.create(t)
	s.fill(t, 2)
	for range 3 {
		_, err := log.Append(session.ProgramLog, note{strings.Repeat("x", 100_000)})
		wantFull(t, err)
		add(t, log, "small")
	}
	if got, err := texts(s.path); err != nil || !slices.Equal(got, []string{"small", "small", "small"}) {
		t.Errorf("the log has %q, %v", got, err)
	}
}

func TestOnAFullDiskNoHalfBlobIsLeft(t *testing.T) {
	s := mountSmall(t, "size=1m")
	log := s.create(t)
	filler := s.fill(t, 2)
	content := []byte(strings.Repeat("x", 50_000))
	_, err := log.Put(content)
	wantFull(t, err)
	if left := names(t, filepath.Join(log.Dir(), "blobs")); len(left) != 1 {
		t.Errorf("the failed Put left %q", left)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	ref, err := log.Put(content)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := log.Get(ref); err != nil || string(got) != string(content) {
		t.Errorf("with room again the blob has %d bytes, %v", len(got), err)
	}
}

func TestALogThatDoesNotFitLeavesNothing(t *testing.T) {
	for _, c := range []struct{ name, options string }{
		{"no room for the first event", "size=64k"},
		{"no room for the file's name", "size=64k,nr_inodes=2"},
		{"no room for the folder", "size=64k,nr_inodes=3"},
		{"no room for a folder in it", "size=64k,nr_inodes=5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mountSmall(t, c.options)
			s.fill(t, 0)
			_, err := session.Create(s.path, "/w", nil)
			wantFull(t, err)
			if place := (*session.PlaceError)(nil); !errors.As(err, &place) {
				t.Errorf("the error is %v, want a PlaceError", err)
			}
			if left := names(t, s.dir); !slices.Equal(left, []string{".", "filler"}) {
				t.Errorf("it left %q", left)
			}
		})
	}
}

func TestAForkThatDoesNotFitLeavesNothing(t *testing.T) {
	source := create(t)
	ref, _ := put(t, source, strings.Repeat("blob", 10_000))
	if _, err := source.Append(session.ToolResult, ref); err != nil {
		t.Fatal(err)
	}
	add(t, source, strings.Repeat("long", 10_000))
	for _, pages := range []int{0, 1, 3, 12} {
		s := mountSmall(t, "size=1m")
		s.fill(t, pages)
		wantFull(t, session.Fork(source.Path(), 3, s.path))
		if left := names(t, s.dir); !slices.Equal(left, []string{".", "filler"}) {
			t.Errorf("with room for %d pages it left %q", pages, left)
		}
	}
}

// The torn end needs a page as a blob, and log/recovered one more where the
// last event fills its page.
func TestATornEndThatCannotBeSetAsideStays(t *testing.T) {
	for _, c := range []struct {
		name  string
		pages int
	}{
		{"no room for the blob", 0},
		{"no room to say so in the log", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := mountSmall(t, "size=1m")
			before := s.tornAtThePagesEnd(t)
			filler := s.fill(t, c.pages)
			_, err := session.Open(s.path, nil)
			wantFull(t, err)
			if raw := s.read(t); raw != before {
				t.Errorf("the file has %d bytes, want the %d that it had", len(raw), len(before))
			}
			blobs := filepath.Join(session.Folder(s.path), "blobs")
			if left := names(t, blobs); len(left) != 1 {
				t.Errorf("the failed opening left %q", left)
			}
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			log, err := session.Open(s.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			log.Close()
			if all := events(t, s.path); all[len(all)-1].Type != session.Recovered || len(names(t, blobs)) != 2 {
				t.Errorf("with room again the last event is %s", all[len(all)-1].Type)
			}
		})
	}
}

// tornAtThePagesEnd makes a log whose file is a whole number of pages, of which
// the last bytes are torn, and returns what it holds.
func (s small) tornAtThePagesEnd(t *testing.T) string {
	t.Helper()
	const torn = `{"se`
	log := s.create(t)
	before := s.read(t)
	add(t, log, "")
	after := s.read(t)
	page, line := os.Getpagesize(), len(after)-len(before)
	add(t, log, strings.Repeat("x", page-(len(after)+line+len(torn))%page))
	log.Close()
	raw := s.read(t) + torn
	if len(raw)%page != 0 {
		t.Fatalf("the log has %d bytes, want whole pages", len(raw))
	}
	if err := os.WriteFile(s.path, []byte(raw), 0o600); err != nil {
		t.Fatal(err)
	}
	return raw
}

func (s small) read(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func init() { children["limited"] = appendOverTheLimit }

// appendOverTheLimit appends more than a file may have, and then less.
func appendOverTheLimit(path string) {
	log, err := session.Create(path, "/w", nil)
	die(err)
	die(unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 10_000, Max: 10_000}))
	_, err = log.Append(session.ProgramLog, note{strings.Repeat("x", 20_000)})
	if !errors.Is(err, unix.EFBIG) {
		die(fmt.Errorf("the event over the limit gave %v", err))
	}
	_, err = log.Append(session.ProgramLog, note{"small"})
	die(err)
}

func TestALimitOfTheFileSizeIsAnErrorOfTheEventThatExceedsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	p := startChild(t, "limited", path)
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &p.errors)
	}
	if got, err := texts(path); err != nil || !slices.Equal(got, []string{"small"}) {
		t.Errorf("the log has %q, %v", got, err)
	}
}
