package session

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Log is a session's log, open for appending. It is safe for concurrent use.
type Log struct {
	path string
	dir  string
	id   string
	now  func() time.Time

	mu        sync.Mutex
	file      *os.File // nil once closed
	chain     chain
	size      int64
	broken    error
	followers []func(Event)
	temporary string // removed by Close

	pending  pending
	redactor atomic.Pointer[Redactor] // nil: nothing is redacted
}

// Create makes a new log at path, which must not exist, owner-only, and its
// folder. It writes session/start with cwd and parent, which may be nil. Its
// error is a *PlaceError.
func Create(path, cwd string, parent *Parent) (*Log, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
	if err != nil {
		return nil, &PlaceError{Path: path, Err: err}
	}
	l := &Log{path: path, dir: Folder(path), id: ID(path), now: time.Now, file: f}
	if err := l.begin(cwd, parent); err != nil {
		f.Close()
		os.Remove(path)
		return nil, &PlaceError{Path: path, Err: err}
	}
	return l, nil
}

func (l *Log) begin(cwd string, parent *Parent) error {
	if err := lock(l.file); err != nil {
		return err
	}
	if err := makeFolder(l.dir); err != nil {
		return err
	}
	_, err := l.Append(Start, Header{ID: l.id, Cwd: cwd, Version: Version, Parent: parent})
	return err
}

func makeFolder(dir string) error {
	for _, d := range []string{dir, filepath.Join(dir, "blobs"), filepath.Join(dir, "spill"), filepath.Join(dir, "tmp")} {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		info, err := os.Lstat(d)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a directory", d)
		}
	}
	return nil
}

// Temporary makes a log that lasts until Close. Its folder is a new temporary
// directory; the events have no name in the file system, so that no command
// can change them there, and Path is empty.
func Temporary(cwd string) (*Log, error) {
	dir, err := os.MkdirTemp("", "dsh-run-")
	if err != nil {
		return nil, err
	}
	l, err := Create(filepath.Join(dir, newID(time.Now())+Suffix), cwd, nil)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if err := unname(l.path); err != nil {
		return nil, errors.Join(err, l.Close(), os.RemoveAll(dir))
	}
	l.path, l.temporary = "", dir
	return l, nil
}

// Open opens an existing log for appending. A torn last line is moved into the
// session's folder and recorded as log/recovered; any other damage is a
// *LineError, a log that this version cannot continue a *ReadOnlyError, a
// second writer a *LockedError. accept may refuse an event of the log, before
// anything is changed, which makes the log one that cannot be continued; nil
// accepts all.
func Open(path string, accept func(Event) error) (*Log, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|noFollow, 0)
	if err != nil {
		return nil, fmt.Errorf("open the session log: %w", err)
	}
	l := &Log{path: path, dir: Folder(path), id: ID(path), now: time.Now, file: f}
	if err := l.resume(accept); err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

func (l *Log) resume(accept func(Event) error) error {
	if err := lock(l.file); err != nil {
		return err
	}
	if err := makeFolder(l.dir); err != nil {
		return err
	}
	var refusal error
	t, err := scan(l.path, io.NewSectionReader(l.file, 0, 1<<62), func(e Event) bool {
		if refusal = continuable(l.path, e); refusal == nil && accept != nil {
			if err := accept(e); err != nil {
				refusal = &ReadOnlyError{Path: l.path, Reason: fmt.Sprintf("event %d, %s: %v", e.Seq, e.Type, err)}
			}
		}
		return refusal == nil
	})
	if refusal != nil {
		return refusal
	}
	info, statErr := l.file.Stat()
	if statErr != nil {
		return statErr
	}
	l.chain, l.size = t.chain, t.offset
	return l.mend(t, info.Size(), err)
}

// mend makes the end of the file a place where the next line can go.
func (l *Log) mend(t tail, size int64, scanErr error) error {
	if t.seq == 0 {
		return &ReadOnlyError{Path: l.path, Reason: "it has no complete first line"}
	}
	if scanErr == nil {
		if !t.unterminated {
			return nil
		}
		l.size++
		_, err := l.file.Write([]byte("\n"))
		return err
	}
	torn := make([]byte, size-t.offset)
	if _, err := l.file.ReadAt(torn, t.offset); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if isTerminated(torn) {
		return scanErr
	}
	return l.setAside(torn)
}

func isTerminated(fragment []byte) bool {
	for _, c := range fragment {
		if c == '\n' {
			return true
		}
	}
	return false
}

func (l *Log) setAside(torn []byte) error {
	ref, err := l.Put(torn)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(l.size); err != nil {
		return err
	}
	_, err = l.Append(Recovered, struct {
		Torn Ref `json:"torn"`
	}{ref})
	return err
}

// continuable says why a log with this event cannot be continued.
func continuable(path string, e Event) error {
	if !knownTypes[e.Type] && !e.Ignorable {
		return &ReadOnlyError{Path: path, Reason: fmt.Sprintf("event %d has the unknown type %q", e.Seq, e.Type)}
	}
	if e.Seq != 1 {
		return nil
	}
	h, err := headerOf(e)
	if err != nil {
		return &ReadOnlyError{Path: path, Reason: err.Error()}
	}
	if h.Version > Version {
		return &ReadOnlyError{Path: path, Reason: fmt.Sprintf("it has format version %d, this program knows %d", h.Version, Version)}
	}
	return nil
}

// Append writes one event. When it returns, the event survives the death of
// this process; see Sync for more. On an error nothing has been appended.
func (l *Log) Append(t Type, data any) (Event, error) {
	raw, err := marshalData(data)
	if err != nil {
		return Event{}, err
	}
	raw = l.redactData(t, raw)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return Event{}, ErrClosed
	}
	if l.broken != nil {
		return Event{}, l.broken
	}
	e := Event{Seq: l.chain.seq + 1, Time: l.now(), Type: t, Data: raw, Prev: l.chain.prev, Ignorable: ignorableTypes[t]}
	line := e.encode()
	if _, err := l.file.Write(line); err != nil {
		return Event{}, l.takeBack(err)
	}
	l.size += int64(len(line))
	l.chain.advance(line[:len(line)-1])
	for _, follow := range l.followers {
		follow(e)
	}
	return e, nil
}

// takeBack removes what a failed write left.
func (l *Log) takeBack(cause error) error {
	cause = fmt.Errorf("append to the session log: %w", cause)
	if err := l.file.Truncate(l.size); err != nil {
		l.broken = &BrokenError{Err: errors.Join(cause, err)}
		return l.broken
	}
	return cause
}

// Follow calls f with every event so far, and then with each new one when it
// has been written, in order and one at a time. f must not block and must not
// use the log. An error is one of reading the file; then f does not follow.
func (l *Log) Follow(f func(Event)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.replay(f); err != nil {
		return err
	}
	l.followers = append(l.followers, f)
	return nil
}

// Replay calls f with every event so far, in order. f must not use the log.
func (l *Log) Replay(f func(Event)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replay(f)
}

func (l *Log) replay(f func(Event)) error {
	if l.file == nil {
		return ErrClosed
	}
	_, err := scan(l.path, io.NewSectionReader(l.file, 0, l.size), func(e Event) bool {
		f(e)
		return true
	})
	return err
}

// Close ends the writing and releases the file. A temporary log is removed.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	if l.temporary != "" {
		err = errors.Join(err, os.RemoveAll(l.temporary))
	}
	return err
}

// Path of the log file, absolute; empty for a temporary log.
func (l *Log) Path() string { return l.path }

// ID of the session: the file's base name without its suffix.
func (l *Log) ID() string { return l.id }

// Dir is the session's folder.
func (l *Log) Dir() string { return l.dir }

// TempDir is the session's temporary directory. It lasts as long as the log.
func (l *Log) TempDir() string { return filepath.Join(l.dir, "tmp") }

// SpillDir is where long output goes.
func (l *Log) SpillDir() string { return filepath.Join(l.dir, "spill") }
