package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Read calls yield for each event of the log at path, in order, until yield
// returns false. It takes no lock and changes nothing. It is for whoever acts on
// the events: it stops at the first damage.
//
// The error is a *LineError for the first line that [Survey] would report; the
// events before it have been yielded. It is an *OpenError where path cannot be
// read or is no regular file.
func Read(path string, yield func(Event) bool) error {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	return read(path, f, yield)
}

func read(path string, r io.Reader, yield func(Event) bool) error {
	var bad error
	err := inspect(r, MaxLine, func(f finding) bool {
		if f.problem != nil {
			bad = f.lineError(path)
			return false
		}
		return yield(f.event)
	})
	if err != nil {
		return err
	}
	return bad
}

// Survey calls yield for every line of the log at path that is an event, also
// behind damage, and bad for each bad line, once, before the event that may
// stand on it; in order, until yield returns false. It takes no lock and
// changes nothing. It is for whoever shows the events.
//
// Bad is a line that is no event, that does not continue the chain, that has a
// byte order mark, NUL bytes or CRLF around its event, that is blank or longer
// than MaxLine, and a torn last one. The chain is taken up again from the next
// event, so that each damage is reported where it is. The error is that of
// reading, an *OpenError where path cannot be read or is no regular file.
func Survey(path string, yield func(Event) bool, bad func(*LineError)) error {
	f, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	return inspect(f, MaxLine, func(f finding) bool {
		if f.problem != nil {
			bad(f.lineError(path))
		}
		return !f.isEvent || yield(f.event)
	})
}

// inspect judges each line of r until visit returns false.
func inspect(r io.Reader, limit int, visit func(finding) bool) error {
	lines, in := newLineReader(r, limit), inspector{limit: limit}
	for {
		l, err := lines.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !visit(in.inspect(l)) {
			return nil
		}
	}
}

// headerOf decodes the first event of a log.
func headerOf(e Event) (Header, error) {
	var h Header
	if e.Type != Start {
		return h, fmt.Errorf("the first event is %q, want %q", e.Type, Start)
	}
	if err := json.Unmarshal(e.Data, &h); err != nil {
		return h, fmt.Errorf("%s: %w", Start, err)
	}
	return h, nil
}

// ReadHeader returns how the session of the log at path started.
func ReadHeader(path string) (Header, error) {
	var h Header
	err := fmt.Errorf("%s: empty", path)
	readErr := Read(path, func(e Event) bool {
		h, err = headerOf(e)
		return false
	})
	if readErr != nil {
		return h, readErr
	}
	return h, err
}
