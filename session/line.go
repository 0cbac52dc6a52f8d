package session

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxLine is how many bytes a line of a log may have, its newline aside: 256
// MiB. Append writes no longer one, and a reader never holds one in memory.
const MaxLine = 256 << 20

// line is one line of a file.
type line struct {
	number int   // from 1
	offset int64 // of its first byte
	size   int64 // in bytes, newline included
	nuls   int64 // how many of them are NUL
	ended  bool  // it has a newline
	long   bool  // it is longer than the limit
	// body is the line without its newline, valid until the next one is read;
	// nil where the line is too long.
	body []byte
}

// lineReader reads a file line by line and never holds more than limit bytes.
type lineReader struct {
	r     *bufio.Reader
	limit int
	last  line
	body  []byte
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns the next line, or io.EOF behind the last one.
func (lr *lineReader) next() (line, error) {
	l := line{number: lr.last.number + 1, offset: lr.last.offset + lr.last.size}
	lr.body = lr.body[:0]
	for {
		part, err := lr.r.ReadSlice('\n')
		l.ended = err == nil
		lr.add(&l, part)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return line{}, err
		case l.size == 0:
			return line{}, io.EOF
		}
		l.body, lr.last = lr.body, l
		return l, nil
	}
}

// add takes part, the next bytes of l.
func (lr *lineReader) add(l *line, part []byte) {
	l.size += int64(len(part))
	if l.ended {
		part = part[:len(part)-1]
	}
	l.nuls += int64(bytes.Count(part, []byte{0}))
	if l.long = l.long || len(lr.body)+len(part) > lr.limit; l.long {
		lr.body = nil
		return
	}
	lr.body = append(lr.body, part...)
}
