package session_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/dsh-run/dsh/session"
)

func put(t *testing.T, log *session.Log, text string) (session.Ref, string) {
	t.Helper()
	ref, err := log.Put([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return ref, filepath.Join(log.Dir(), "blobs", ref.SHA256)
}

// A blob that is gone makes Sync fail exactly while it is one to sync.
func TestSyncCoversTheBlobsPutSinceTheLastOne(t *testing.T) {
	log := create(t)
	_, early := put(t, log, "early")
	if err := log.Sync(); err != nil {
		t.Fatal(err)
	}
	os.Remove(early)
	if err := log.Sync(); err != nil {
		t.Errorf("a blob that was synced is synced again: %v", err)
	}
	_, late := put(t, log, "late")
	os.Remove(late)
	for range 2 {
		if err := log.Sync(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a new blob is not synced: %v", err)
		}
	}
	put(t, log, "late")
	if err := log.Sync(); err != nil {
		t.Errorf("after the blob was put again: %v", err)
	}
}

func TestSyncCoversABlobThatWasThereAlready(t *testing.T) {
	log := create(t)
	put(t, log, "x")
	log.Close()
	log, err := session.Open(log.Path(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	_, path := put(t, log, "x")
	os.Remove(path)
	if err := log.Sync(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a blob of the writer before is not synced: %v", err)
	}
}

func TestSyncOfAClosedLogSaysSo(t *testing.T) {
	log := create(t)
	log.Close()
	if err := log.Sync(); !errors.Is(err, session.ErrClosed) {
		t.Errorf("the error is %v", err)
	}
}

func TestSyncMayRunWhileOthersWrite(t *testing.T) {
	log := create(t)
	var group sync.WaitGroup
	for _, text := range []string{"a", "b", "c", "d"} {
		group.Go(func() {
			ref, err := log.Put([]byte(text))
			if err == nil {
				_, err = log.Append(session.ProgramLog, ref)
			}
			if err = errors.Join(err, log.Sync()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func TestABlobThatWasCutShortIsStoredAgain(t *testing.T) {
	log := create(t)
	ref, path := put(t, log, "content")
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	put(t, log, "content")
	if got, err := log.Get(ref); err != nil || string(got) != "content" {
		t.Errorf("the blob is %q, %v", got, err)
	}
}

func BenchmarkSync(b *testing.B) {
	log, err := session.Create(filepath.Join(b.TempDir(), "s.jsonl"), "/w", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	for b.Loop() {
		if _, err := log.Append(session.ProgramLog, note{"a"}); err != nil {
			b.Fatal(err)
		}
		if err := log.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}
