package session

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Read calls yield for each event of the log at path, in order, until yield
// returns false. It takes no lock and changes nothing.
//
// The error is a *LineError for the first line that is no event or does not
// continue the chain; the events before it have been yielded. A last line
// that has no newline and is incomplete is such a line.
func Read(path string, yield func(Event) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = scan(path, f, yield)
	return err
}

// tail is where a scan ended well.
type tail struct {
	chain
	offset       int64 // of the first byte after the last good line
	lines        int
	unterminated bool // the last good line has no newline
}

func scan(path string, r io.Reader, yield func(Event) bool) (tail, error) {
	var t tail
	br := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := br.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return t, err
		}
		if len(line) == 0 {
			return t, nil
		}
		body, terminated := line, false
		if line[len(line)-1] == '\n' {
			body, terminated = line[:len(line)-1], true
		}
		event, err := t.next(body)
		if err != nil {
			return t, &LineError{Path: path, Line: t.lines + 1, Offset: t.offset, Err: err}
		}
		t.offset += int64(len(line))
		t.lines++
		t.unterminated = !terminated
		if !yield(event) {
			return t, nil
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
