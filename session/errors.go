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

// LineError says which line of a log is the first bad one, and why.
type LineError struct {
	Path   string
	Line   int   // from 1
	Offset int64 // of the line's first byte
	Err    error
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
