package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	// limit of a line's bytes
	limit int

	mu        sync.Mutex
	file      *os.File // nil once closed
	chain     chain
	size      int64
	broken    error
	followers []func(Event)
	temporary string // removed by Close
	torn      *Ref   // what Open set aside

	pending  pending
	redactor atomic.Pointer[Redactor] // nil: nothing is redacted
}

// Create makes a new log at path, which must not exist, owner-only, and its
// folder; one that is there already must be this user's alone. It writes session/start with cwd and parent, which may be nil. Its
// error is a *PlaceError.
func Create(path, cwd string, parent *Parent) (*Log, error) {
	path, err := canonical(path)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
	if err != nil {
		return nil, &PlaceError{Path: path, Err: err}
	}
	l := &Log{path: path, dir: Folder(path), id: ID(path), now: time.Now, limit: MaxLine, file: f}
	if err := l.begin(cwd, parent); err != nil {
		f.Close()
		os.Remove(path)
		removeFolder(l.dir)
		return nil, &PlaceError{Path: path, Err: err}
	}
	return l, nil
}

func (l *Log) begin(cwd string, parent *Parent) error {
	if err := lock(l.file); err != nil {
		return err
	}
	if err := makeFolder(l.dir, private); err != nil {
		return err
	}
	_, err := l.Append(Start, Header{ID: l.id, Cwd: cwd, Version: Version, Parent: parent})
	return err
}

// folders of a session, each behind the one that it lies in.
func folders(dir string) []string {
	return []string{dir, filepath.Join(dir, "blobs"), filepath.Join(dir, "spill"), filepath.Join(dir, "tmp")}
}

// removeFolder takes back what makeFolder made, unless something lies in it.
func removeFolder(dir string) {
	for _, d := range slices.Backward(folders(dir)) {
		os.Remove(d)
	}
}

// makeFolder makes what is missing of a session's folder. old judges a
// directory that was there already; nil accepts any.
func makeFolder(dir string, old func(string, fs.FileInfo) error) error {
	for _, d := range folders(dir) {
		err := os.Mkdir(d, 0o700)
		if err == nil {
			continue
		}
		if !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("its folder %s cannot be made: %w", d, bare(err))
		}
		info, err := os.Lstat(d)
		switch {
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a directory", d)
		case old != nil:
			if err := old(d, info); err != nil {
				return err
			}
		}
	}
	return nil
}

// probeFolder says which folder inside a session's takes no new file.
func probeFolder(dir string) error {
	for _, d := range folders(dir)[1:] {
		f, err := os.CreateTemp(d, unfinished+"*")
		if err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
		if err != nil {
			return fmt.Errorf("nothing can be written to its folder %s: %w", d, bare(err))
		}
	}
	return nil
}

// Temporary makes a log that lasts until Close. Its folder is a new temporary
// directory; the events have no name in the file system, so that no command
// can change them there, and Path is empty. parent may be nil.
func Temporary(cwd string, parent *Parent) (*Log, error) {
	dir, err := os.MkdirTemp("", "dsh-run-")
	if err != nil {
		return nil, err
	}
	l, err := Create(filepath.Join(dir, newID(time.Now())+Suffix), cwd, parent)
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

// Open opens an existing log for appending. What a crash leaves behind the last
// event, lines that hold no JSON object and a torn last one, is moved into the
// session's folder and recorded as log/recovered; a complete last event without
// its newline is kept.
//
// Any other damage is a *LineError, a log that this version cannot continue a
// *ReadOnlyError, a second writer a *LockedError, a file that cannot be opened
// or is none, and a folder that takes no files, an *OpenError; then the file is
// as it was. accept may refuse an event of the log, which makes the log one that
// cannot be continued; nil accepts all.
func Open(path string, accept func(Event) error) (*Log, error) {
	path, err := canonical(path)
	if err != nil {
		return nil, err
	}
	f, err := openRegular(path, os.O_RDWR|os.O_APPEND|noFollow)
	if err != nil {
		return nil, err
	}
	l := &Log{path: path, dir: Folder(path), id: ID(path), now: time.Now, limit: MaxLine, file: f}
	if err := l.resume(accept); err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// Append writes one event. When it returns, the event survives the death of
// this process; see Sync for more. On an error nothing has been appended; it is a
// *LineTooLongError for an event that would need more than MaxLine bytes.
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
	if len(line)-1 > l.limit {
		return Event{}, &LineTooLongError{Type: t, Bytes: len(line) - 1, Limit: l.limit}
	}
	if _, err := l.file.Write(line); err != nil {
		return Event{}, l.takeBack(err)
	}
	l.size += int64(len(line))
	l.chain.take(e, line[:len(line)-1])
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
	return read(l.path, io.NewSectionReader(l.file, 0, l.size), func(e Event) bool {
		f(e)
		return true
	})
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

// Torn names the blob that holds what Open set aside; nil: nothing was.
func (l *Log) Torn() *Ref { return l.torn }

// Path of the log file, absolute and without symbolic links; empty for a
// temporary log.
func (l *Log) Path() string { return l.path }

// ID of the session: the file's base name without its suffix.
func (l *Log) ID() string { return l.id }

// Seq is the number of the last event.
func (l *Log) Seq() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.chain.seq
}

// Dir is the session's folder; like Path it names the directory itself.
func (l *Log) Dir() string { return l.dir }

// TempDir is the session's temporary directory. It lasts as long as the log.
func (l *Log) TempDir() string { return filepath.Join(l.dir, "tmp") }

// SpillDir is where long output goes.
func (l *Log) SpillDir() string { return filepath.Join(l.dir, "spill") }
