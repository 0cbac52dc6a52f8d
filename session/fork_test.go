package session_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsh-run/dsh/session"
)

func events(t *testing.T, path string) (list []session.Event) {
	t.Helper()
	err := session.Read(path, func(e session.Event) bool { list = append(list, e); return true })
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// forked forks the log at source into a new one.
func forked(t *testing.T, source string, seq uint64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fork.jsonl")
	if err := session.Fork(source, seq, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// names returns what lies in dir, at any depth.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		list = append(list, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestAForkHasTheEventsUpToItsPoint(t *testing.T) {
	source := create(t) // stays open: a fork takes no lock
	add(t, source, "a", "<&>\u2028", "c")
	if _, err := source.Append(session.ToolStarted, json.RawMessage(`{"n":1.50,"b":{"a":1,"a":2}}`)); err != nil {
		t.Fatal(err)
	}
	add(t, source, "after")
	path := forked(t, source.Path(), 5)
	from, to := events(t, source.Path())[:5], events(t, path)
	if len(to) != 5 {
		t.Fatalf("the fork has %d events, want 5", len(to))
	}
	for i := range from {
		if i > 0 && !bytes.Equal(from[i].Data, to[i].Data) {
			t.Errorf("event %d has the data %s, want %s", i+1, to[i].Data, from[i].Data)
		}
		from[i].Data, to[i].Data, from[i].Prev, to[i].Prev = nil, nil, "", ""
		if from[i].Seq != to[i].Seq || !from[i].Time.Equal(to[i].Time) || from[i].Type != to[i].Type || from[i].Ignorable != to[i].Ignorable {
			t.Errorf("event %d is %+v, want %+v", i+1, to[i], from[i])
		}
	}
	h, err := session.ReadHeader(path)
	if err != nil || h.ID != "fork" || h.Cwd != "/w" || h.Version != session.Version || h.Parent == nil || *h.Parent != (session.Parent{ID: "s", Seq: 5}) {
		t.Errorf("the fork starts with %+v, parent %+v, %v", h, h.Parent, err)
	}
}

func TestAForkGoesOnByItself(t *testing.T) {
	source := closed(t, "a", "b", "c")
	path := forked(t, source, 3)
	log, err := session.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	add(t, log, "other")
	log.Close()
	again := forked(t, path, 4)
	for name, want := range map[string][]string{source: {"a", "b", "c"}, path: {"a", "b", "other"}, again: {"a", "b", "other"}} {
		if got, err := texts(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s has %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestAForkOfASubSessionStaysFixed(t *testing.T) {
	source, err := session.Create(filepath.Join(t.TempDir(), "s.jsonl"), "/w", &session.Parent{ID: "p", Seq: 9, Sub: true})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	h, err := session.ReadHeader(forked(t, source.Path(), 1))
	if err != nil || *h.Parent != (session.Parent{ID: "s", Seq: 1, Sub: true}) {
		t.Errorf("the parent is %+v, %v", h.Parent, err)
	}
}

func TestAForkBringsTheBlobsThatItsEventsName(t *testing.T) {
	source := create(t)
	top, _ := put(t, source, "top")
	deep, _ := put(t, source, "deep")
	unnamed, _ := put(t, source, "unnamed")
	late, _ := put(t, source, "late")
	lost, gone := put(t, source, "lost")
	for _, data := range []any{
		map[string]any{"value_ref": top, "lost": lost},
		map[string]any{"list": []any{map[string]any{"details": map[string]any{"ref": deep}}, deep}, "huge": json.Number("1e999")},
		map[string]any{"sha256": unnamed.SHA256, "bytes": unnamed.Bytes, "more": 1},
		map[string]any{"sha256": "../../s", "bytes": 3},
		late,
	} {
		if _, err := source.Append(session.ToolResult, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	path := forked(t, source.Path(), 5)
	for ref, want := range map[session.Ref]string{top: "top", deep: "deep"} {
		if got, err := session.ReadBlob(path, ref); err != nil || string(got) != want {
			t.Errorf("the blob %q is %q, %v", want, got, err)
		}
	}
	got := names(t, filepath.Join(session.Folder(path), "blobs"))
	want := []string{".", top.SHA256, deep.SHA256}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the fork has the blobs %q, want %q", got, want)
	}
	if err := os.RemoveAll(source.Dir()); err != nil {
		t.Fatal(err)
	}
	if _, err := session.ReadBlob(path, top); err != nil {
		t.Errorf("without the source the blob is gone: %v", err)
	}
}

func TestAForkIsTheOwnersAlone(t *testing.T) {
	source := create(t)
	ref, _ := put(t, source, "blob")
	if _, err := source.Append(session.ToolResult, ref); err != nil {
		t.Fatal(err)
	}
	path := forked(t, source.Path(), 2)
	for _, name := range names(t, filepath.Dir(path))[1:] {
		info, err := os.Stat(filepath.Join(filepath.Dir(path), name))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v, %v", name, info.Mode(), err)
		}
	}
}

func TestDamageBehindTheForkDoesNotMatter(t *testing.T) {
	source := closed(t, "a", "b", "c")
	raw, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Replace(raw, []byte(`"b"`), []byte(`"x"`), 1)
	if err := os.WriteFile(source, damaged, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := texts(forked(t, source, 2)); err != nil || !slices.Equal(got, []string{"a"}) {
		t.Errorf("the fork has %q, %v", got, err)
	}
	dir := t.TempDir()
	err = session.Fork(source, 4, filepath.Join(dir, "f.jsonl"))
	if bad := (*session.LineError)(nil); !errors.As(err, &bad) || bad.Line != 4 {
		t.Errorf("damage before the fork gave %v, want an error of line 4", err)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Errorf("the failed fork left %q", left)
	}
}

func TestAForkThatCannotBeLeavesNothing(t *testing.T) {
	source := closed(t, "a", "b")
	newer := filepath.Join(t.TempDir(), "newer.jsonl")
	line := `{"seq":1,"time":"2026-01-01T00:00:00Z","type":"session/start","data":{"id":"s","cwd":"/","version":99},"prev":""}`
	if err := os.WriteFile(newer, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	free, taken, folder := filepath.Join(dir, "f.jsonl"), filepath.Join(dir, "t.jsonl"), filepath.Join(dir, "d.jsonl")
	if err := errors.Join(os.WriteFile(taken, []byte("mine"), 0o600), os.Mkdir(session.Folder(folder), 0o700)); err != nil {
		t.Fatal(err)
	}
	before := names(t, dir)
	for _, c := range []struct {
		name, source string
		seq          uint64
		path         string
		want         any
		why          string
	}{
		{"there is no event 0", source, 0, free, new(*session.SeqError), "no event 0 to fork at; the log has the events 1 to 3"},
		{"there is no event behind the end", source, 4, free, new(*session.SeqError), "no event 4 to fork at; the log has the events 1 to 3"},
		{"a log that cannot be continued", newer, 1, free, new(*session.ReadOnlyError), "format version 99"},
		{"a path that is taken", source, 2, taken, new(*session.PlaceError), "exists"},
		{"a path that is the source", source, 2, source, new(*session.PlaceError), "exists"},
		{"a folder that is taken", source, 2, folder, new(*session.PlaceError), "exists"},
		{"a folder that is missing", source, 2, filepath.Join(dir, "no", "f.jsonl"), new(*session.PlaceError), "no"},
		{"a source that is missing", filepath.Join(dir, "none.jsonl"), 2, free, new(*os.PathError), "none.jsonl"},
		{"event 0 of a source that is missing", filepath.Join(dir, "none.jsonl"), 0, free, new(*os.PathError), "none.jsonl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := session.Fork(c.source, c.seq, c.path)
			if err == nil || !errors.As(err, c.want) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("the error is %v, want a %T with %q", err, c.want, c.why)
			}
			if left := names(t, dir); !slices.Equal(left, before) {
				t.Errorf("the folder holds %q, want %q", left, before)
			}
		})
	}
	if got, err := texts(source); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the source has %q, %v", got, err)
	}
}

func TestALogMayBeForkedWhileItIsWritten(t *testing.T) {
	log := create(t)
	add(t, log, "a")
	done := make(chan error, 1)
	go func() {
		var err error
		for range 50 {
			if err == nil {
				_, err = log.Append(session.ProgramLog, note{strings.Repeat("long", 1<<16)})
			}
		}
		done <- err
	}()
	for range 10 {
		if got, err := texts(forked(t, log.Path(), 2)); err != nil || !slices.Equal(got, []string{"a"}) {
			t.Errorf("the fork has %q, %v", got, err)
		}
	}
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the writer hangs")
	}
}

// An event type of a newer version that may be skipped is copied whatever its
// name, and the line stays JSON.
func TestAForkQuotesTheNamesOfUnknownEvents(t *testing.T) {
	source := closed(t)
	raw, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.TrimSuffix(raw, []byte("\n"))
	line := `{"seq":2,"time":"2026-01-01T00:00:00+02:00","type":"a\"b","ignorable":true,"prev":"` + sha(first) + `"}` + "\n"
	if err := os.WriteFile(source, append(raw, line...), 0o600); err != nil {
		t.Fatal(err)
	}
	got := events(t, forked(t, source, 2))
	if len(got) != 2 || got[1].Type != `a"b` || !got[1].Ignorable || string(got[1].Data) != "null" {
		t.Errorf("the fork has %+v", got)
	}
}

func sha(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
