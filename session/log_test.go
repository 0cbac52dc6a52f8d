package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/session/sessiontest"
)

type note struct {
	Text string `json:"text"`
}

func create(t *testing.T) *session.Log {
	t.Helper()
	log, err := session.Create(filepath.Join(t.TempDir(), "s.jsonl"), "/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

func add(t *testing.T, log *session.Log, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := log.Append(session.ProgramLog, note{text}); err != nil {
			t.Fatal(err)
		}
	}
}

// closed returns the path of a log that holds the texts.
func closed(t *testing.T, texts ...string) string {
	t.Helper()
	log := create(t)
	add(t, log, texts...)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return log.Path()
}

// texts reads the log's notes; the error is that of reading.
func texts(path string) (list []string, err error) {
	err = session.Read(path, func(e session.Event) bool {
		var n note
		if e.Type == session.ProgramLog && json.Unmarshal(e.Data, &n) == nil {
			list = append(list, n.Text)
		}
		return true
	})
	return list, err
}

func TestEventsComeBackAsTheyWereAppended(t *testing.T) {
	want := []string{"one", "<&> \u2028 \x00 ünïcode", strings.Repeat("long", 1<<20), ""}
	path := closed(t, want...)
	got, err := texts(path)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("read %d texts, error %v; want the %d that were written", len(got), err, len(want))
	}
	header, err := session.ReadHeader(path)
	if err != nil || header.ID != "s" || header.Cwd != "/w" || header.Version != session.Version {
		t.Errorf("header is %+v, %v", header, err)
	}
}

func TestAReopenedLogGoesOnWithTheChain(t *testing.T) {
	path := closed(t, "a")
	log, err := session.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	add(t, log, "b")
	log.Close()
	if got, err := texts(path); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestLogAndFolderAreTheOwnersAlone(t *testing.T) {
	log := create(t)
	for _, path := range []string{log.Path(), log.Dir(), log.TempDir(), log.SpillDir()} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
	}
}

func TestASecondWriterIsKeptOut(t *testing.T) {
	log := create(t)
	_, err := session.Open(log.Path(), nil)
	if locked := (*session.LockedError)(nil); !errors.As(err, &locked) {
		t.Errorf("a second writer got %v, want a LockedError", err)
	}
	if _, err := texts(log.Path()); err != nil {
		t.Errorf("a reader got %v", err)
	}
	log.Close()
	again, err := session.Open(log.Path(), nil)
	if err != nil {
		t.Fatalf("after the first writer closed: %v", err)
	}
	again.Close()
}

func TestALogThatCannotBeCreatedLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "s.jsonl")
	if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{taken, filepath.Join(dir, "missing", "s.jsonl"), dir} {
		_, err := session.Create(path, "/w", nil)
		if place := (*session.PlaceError)(nil); !errors.As(err, &place) {
			t.Errorf("%s: %v, want a PlaceError", path, err)
		}
	}
	if raw, _ := os.ReadFile(taken); string(raw) != "mine" {
		t.Errorf("the file that was there is now %q", raw)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

func TestALinkIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.jsonl")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), path); err != nil {
		sessiontest.Need(t, "symlinks", false, err.Error())
	}
	if log, err := session.Create(path, "/w", nil); err == nil {
		log.Close()
		t.Error("a log was created through a link")
	}
}

func TestBlobsAreCheckedWhenTheyAreRead(t *testing.T) {
	log := create(t)
	ref, err := log.Put([]byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := log.Put([]byte("content")); err != nil || again != ref {
		t.Errorf("the same content got %v, %v, want %v", again, err, ref)
	}
	if got, err := log.Get(ref); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(log.Dir(), "blobs", ref.SHA256), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Get(ref); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("a changed blob gave %v", err)
	}
	if _, err := log.Get(session.Ref{SHA256: "../../s.jsonl"}); err == nil {
		t.Error("a name that is no hash was read")
	}
}

func TestATemporaryLogIsGoneAfterClose(t *testing.T) {
	log, err := session.Temporary("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	add(t, log, "a")
	seen := 0
	if err := log.Replay(func(session.Event) { seen++ }); err != nil || seen != 2 || log.Path() != "" {
		t.Errorf("replayed %d events, %v; path %q", seen, err, log.Path())
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(log.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder %s is still there: %v", log.Dir(), err)
	}
	if _, err := log.Append(session.ProgramLog, note{}); !errors.Is(err, session.ErrClosed) {
		t.Errorf("appending to a closed log gave %v", err)
	}
}

func TestFollowersSeeEveryEventOnceAndInOrder(t *testing.T) {
	log := create(t)
	add(t, log, "a")
	var seqs []uint64
	if err := log.Follow(func(e session.Event) { seqs = append(seqs, e.Seq) }); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 20)
	for range 20 {
		go func() {
			_, err := log.Append(session.ProgramLog, note{"b"})
			done <- err
		}()
	}
	for range 20 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for i, seq := range seqs {
		if seq != uint64(i+1) {
			t.Fatalf("the order was %v", seqs)
		}
	}
	if len(seqs) != 22 {
		t.Errorf("saw %d events, want 22", len(seqs))
	}
}

// A hundred goroutines append and sync while followers come and the log is
// closed under them.
func TestAClosedLogHasExactlyWhatWasAcknowledged(t *testing.T) {
	log := create(t)
	var acknowledged, followed atomic.Int64
	var group sync.WaitGroup
	started := make(chan struct{}, 100)
	for range 100 {
		group.Go(func() {
			err := log.Follow(func(session.Event) { followed.Add(1) })
			for err == nil {
				if _, err = log.Append(session.ProgramLog, note{"x"}); err != nil {
					break
				}
				acknowledged.Add(1)
				select {
				case started <- struct{}{}:
				default:
				}
				err = log.Sync()
			}
			if !errors.Is(err, session.ErrClosed) {
				t.Error(err)
			}
		})
	}
	for range 100 {
		<-started
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	group.Wait()
	got, err := texts(log.Path())
	if err != nil || int64(len(got)) != acknowledged.Load() {
		t.Errorf("the log has %d events, %v; %d were acknowledged", len(got), err, acknowledged.Load())
	}
	if followed.Load() < acknowledged.Load() {
		t.Errorf("the followers saw %d events, fewer than the %d of the log", followed.Load(), acknowledged.Load())
	}
}

// Whatever the file holds, reading ends, and what it accepts is a chain.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"seq":1,"time":"2026-01-01T00:00:00Z","type":"session/start","data":{},"prev":""}` + "\n"))
	f.Add([]byte("{}\n{}"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(t.TempDir(), "s.jsonl")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		last := uint64(0)
		err := session.Read(path, func(e session.Event) bool {
			if e.Seq != last+1 {
				t.Fatalf("event %d follows %d", e.Seq, last)
			}
			last = e.Seq
			return true
		})
		lines := bytes.Count(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n")) + 1
		if len(raw) == 0 {
			lines = 0
		}
		if err == nil && last != uint64(lines) {
			t.Fatalf("%d lines gave %d events and no error", lines, last)
		}
	})
}
