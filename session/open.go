package session

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// openRegular opens a regular file, and waits for nothing else. Its error is an
// *OpenError.
func openRegular(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|noWait, 0)
	if err != nil {
		if info, e := os.Lstat(path); e == nil && flag&noFollow != 0 && info.Mode()&fs.ModeSymlink != 0 {
			err = errors.New("it is a symbolic link, want the file itself")
		}
		return nil, &OpenError{Path: path, Err: err}
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is %s, want a regular file", kindOf(info.Mode()))
	}
	if err != nil {
		f.Close()
		return nil, &OpenError{Path: path, Err: err}
	}
	return f, nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	default:
		return "a special file"
	}
}

// ending is where the events of a log end.
type ending struct {
	chain        chain
	last         Event
	size         int64 // of the events, their newlines included
	unterminated bool  // the last one has none
	junk         bool  // something that is no event follows
}

func (l *Log) resume(accept func(Event) error) error {
	if err := lock(l.file); err != nil {
		return err
	}
	end, err := l.readEnding(accept)
	if err != nil {
		return err
	}
	if end.chain.seq == 0 {
		return &ReadOnlyError{Path: l.path, Reason: "it has no complete first line"}
	}
	err = makeFolder(l.dir, nil)
	if err == nil {
		err = probeFolder(l.dir)
	}
	if err != nil {
		return &OpenError{Path: l.path, Err: err}
	}
	l.chain, l.size = end.chain, end.size
	if err := l.mend(end); err != nil {
		return err
	}
	return l.finishEarlier(end.last)
}

// readEnding reads all events. Its error says why the log cannot be continued.
func (l *Log) readEnding(accept func(Event) error) (end ending, refusal error) {
	var bad *LineError
	err := inspect(io.NewSectionReader(l.file, 0, 1<<62), l.limit, func(f finding) bool {
		if bad == nil && f.problem == nil {
			end = ending{chain: f.after, last: f.event, size: f.offset + f.size, unterminated: !f.ended}
			refusal = l.acceptable(f.event, accept)
			return refusal == nil
		}
		if bad == nil {
			bad = f.lineError(l.path)
		}
		if end.junk = true; !f.junk() {
			refusal = bad
		}
		return refusal == nil
	})
	return end, errors.Join(refusal, err)
}

// acceptable says why a log with this event cannot be continued.
func (l *Log) acceptable(e Event, accept func(Event) error) error {
	if err := continuable(l.path, e); err != nil || accept == nil {
		return err
	}
	if err := accept(e); err != nil {
		return &ReadOnlyError{Path: l.path, Reason: fmt.Sprintf("event %d, %s: %v", e.Seq, e.Type, err)}
	}
	return nil
}

// continuable says why this version cannot continue a log with this event.
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

// mend makes the end of the file a place where the next line can go.
func (l *Log) mend(end ending) error {
	switch {
	case end.junk:
		return l.setAside()
	case end.unterminated:
		l.size++
		if _, err := l.file.Write([]byte("\n")); err != nil {
			return &OpenError{Path: l.path, Err: err}
		}
		return nil
	default:
		return nil
	}
}
