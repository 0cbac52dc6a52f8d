package session

import (
	"errors"
	"fmt"
	"io/fs"
)

// ErrClosed is returned by operations on a closed log.
var ErrClosed = errors.New("the session log is closed")

// PlaceError says why a new log cannot be where it was wanted.
type PlaceError struct {
	Path string // empty: none could be chosen
	Err  error
}

func (e *PlaceError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("there is no place for the session log: %v", e.Err)
	}
	return fmt.Sprintf("the session log cannot be %s: %v", e.Path, bare(e.Err))
}

func (e *PlaceError) Unwrap() error { return e.Err }

// bare leaves out the path that an error of package os repeats.
func bare(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// OpenError says why a file cannot be opened as a session's log, to read or to
// append to it.
type OpenError struct {
	Path string
	Err  error
}

func (e *OpenError) Error() string {
	return fmt.Sprintf("%s: cannot be opened as a session log: %v", e.Path, bare(e.Err))
}

func (e *OpenError) Unwrap() error { return e.Err }

// LineTooLongError says that an event was too large for a line; nothing has
// been written.
type LineTooLongError struct {
	Type  Type
	Bytes int // that the line would have had
	Limit int // that it may have
}

func (e *LineTooLongError) Error() string {
	return fmt.Sprintf("a %s event needs a line of %d bytes, more than the %d that one may have; it was not written", e.Type, e.Bytes, e.Limit)
}

// LineError says which line of a log is bad, and why.
type LineError struct {
	Path   string
	Line   int   // from 1
	Offset int64 // of the line's first byte
	// Torn says that it is the end of an event that was never written whole: the
	// last line, without its newline. [Open] sets it aside.
	Torn bool
	Err  error
}

func (e *LineError) Error() string {
	return fmt.Sprintf("%s: line %d (byte %d): %v", e.Path, e.Line, e.Offset, e.Err)
}

func (e *LineError) Unwrap() error { return e.Err }

// LockedError says that another process, or another Log of this one, writes
// the file.
type LockedError struct{ Path string }

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s: another writer has this session open; wait for it to end or use another log", e.Path)
}

// ReadOnlyError says why a log can be read but not resumed.
type ReadOnlyError struct {
	Path   string
	Reason string
}

func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("%s: can be read but not resumed: %s", e.Path, e.Reason)
}

// BrokenError is returned by every append after a write failed half-way and
// could not be taken back.
type BrokenError struct{ Err error }

func (e *BrokenError) Error() string {
	return fmt.Sprintf("the session log is broken since a failed write: %v", e.Err)
}

func (e *BrokenError) Unwrap() error { return e.Err }

// RemovedError says that the log's file was removed while it was written: no
// name leads to its events any more.
type RemovedError struct{ Path string }

func (e *RemovedError) Error() string {
	return fmt.Sprintf("the session log %s has been removed", e.Path)
}

// PatternError says why a pattern cannot be used for redaction.
type PatternError struct {
	Name  string // empty: it has none
	Index int    // in the list that was given, from 0
	Err   error
}

func (e *PatternError) Error() string {
	return fmt.Sprintf("redaction pattern %d, %q: %v", e.Index+1, e.Name, e.Err)
}

func (e *PatternError) Unwrap() error { return e.Err }

// SeqError says that a log has no event where a fork was wanted.
type SeqError struct {
	Path string
	Seq  uint64 // wanted
	Last uint64 // of the log; 0: it is empty
}

func (e *SeqError) Error() string {
	if e.Last == 0 {
		return fmt.Sprintf("%s: there is no event %d to fork at; the log is empty", e.Path, e.Seq)
	}
	return fmt.Sprintf("%s: there is no event %d to fork at; the log has the events 1 to %d", e.Path, e.Seq, e.Last)
}
