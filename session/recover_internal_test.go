package session

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const tornEnd = `{"seq":2,"type":"ptc/log","data":{"text":"to`

// tornLog is a log of one event with a torn end.
func tornLog(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.jsonl")
	log, err := Create(path, "/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	log.Close()
	extend(t, path, tornEnd)
	return path
}

func extend(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// crashAfter opens the log at path and ends the recovery after so many steps.
// It returns whether there are as many.
func crashAfter(t *testing.T, path string, steps int) bool {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := &Log{path: path, dir: Folder(path), now: time.Now, limit: MaxLine, file: f}
	end, err := l.readEnding(nil)
	if err != nil {
		t.Fatal(err)
	}
	l.chain, l.size = end.chain, end.size
	r := &recovery{log: l}
	all := r.steps()
	for _, step := range all[:steps] {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return steps < len(all)
}

// recorded returns the ends that a log has recorded, in order.
func recorded(t *testing.T, path string) (ends []string) {
	t.Helper()
	err := Read(path, func(e Event) bool {
		var data recoveredData
		if e.Type != Recovered {
			return true
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Error(err)
		}
		blob, err := ReadBlob(path, data.Torn)
		if err != nil {
			t.Error(err)
		}
		ends = append(ends, string(blob))
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return ends
}

func reopen(t *testing.T, path string) {
	t.Helper()
	log, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	log.Close()
	if last := log.Torn(); last != nil && !isStored(log.blobPath(*last), *last) {
		t.Errorf("what was set aside is not in the blob %v", last)
	}
	left, err := os.ReadDir(filepath.Join(Folder(path), "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), ".") {
			t.Errorf("the opening left %s", entry.Name())
		}
	}
}

func TestACrashInARecoveryCostsNoTornEndAndNoRecordOfIt(t *testing.T) {
	for steps, more := 0, true; more; steps++ {
		t.Run(fmt.Sprintf("after %d steps", steps), func(t *testing.T) {
			path := tornLog(t)
			more = crashAfter(t, path, steps)
			reopen(t, path)
			if ends := recorded(t, path); !slices.Equal(ends, []string{tornEnd}) {
				t.Errorf("the log records the torn ends %q, want %q once", ends, tornEnd)
			}
		})
	}
}

// The crash may come while the event is being written, and once more in the
// recovery from that.
func TestACrashInTheRecordOfARecoveryCostsNoTornEnd(t *testing.T) {
	const torn = `{"seq":2,"time":"20`
	for steps, more := 0, true; more; steps++ {
		t.Run(fmt.Sprintf("again after %d steps", steps), func(t *testing.T) {
			path := tornLog(t)
			crashAfter(t, path, 3)
			extend(t, path, torn)
			more = crashAfter(t, path, steps)
			reopen(t, path)
			ends := recorded(t, path)
			slices.Sort(ends)
			if !slices.Equal(ends, []string{torn, tornEnd}) {
				t.Errorf("the log records the torn ends %q, want %q and %q", ends, torn, tornEnd)
			}
		})
	}
}

// A crash may also come while an error is being undone.
func TestAnEndThatWasPutBackInPartIsRecordedWholeAndInPart(t *testing.T) {
	path := tornLog(t)
	crashAfter(t, path, 3)
	extend(t, path, tornEnd[:9])
	reopen(t, path)
	ends := recorded(t, path)
	slices.Sort(ends)
	if !slices.Equal(ends, []string{tornEnd[:9], tornEnd}) {
		t.Errorf("the log records the torn ends %q", ends)
	}
}

// Two ends can have the same bytes, and so one blob.
func TestARecoveryThatFailsLeavesTheBlobOfAnEarlierOne(t *testing.T) {
	path := tornLog(t)
	reopen(t, path)
	extend(t, path, tornEnd)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := &Log{path: path, dir: Folder(path), now: time.Now, limit: 10, file: f}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l.size = int64(len(before) - len(tornEnd))
	if err := l.setAside(); err == nil {
		t.Fatal("an event that is too long was recorded")
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file was changed, or %v", err)
	}
	reopen(t, path)
	if ends := recorded(t, path); !slices.Equal(ends, []string{tornEnd, tornEnd}) {
		t.Errorf("the log records the torn ends %q, want %q twice", ends, tornEnd)
	}
}

func TestABlobThatWasNeverFinishedIsRemoved(t *testing.T) {
	path := tornLog(t)
	left := filepath.Join(Folder(path), "blobs", unfinished+"1")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	reopen(t, path)
}
