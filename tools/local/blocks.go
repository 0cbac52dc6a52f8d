package local

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// The sizes of a block. A line longer than blockMax is handed out in pieces.
const (
	blockSize = 256 << 10
	blockMax  = 16 << 20
)

var errBinary = errors.New("it has a NUL byte, so it is binary")

// blockReader hands out a text in blocks of whole lines.
type blockReader struct {
	r    io.Reader
	buf  []byte
	have int // bytes in buf
	used int // of these handed out
	eof  bool
}

func (b *blockReader) reset(r io.Reader) {
	b.r, b.have, b.used, b.eof = r, 0, 0, false
	if len(b.buf) > blockSize {
		b.buf = make([]byte, blockSize)
	}
}

// next returns the next block, which is valid until the next call. Errors are
// io.EOF at the end, and errBinary.
func (b *blockReader) next(ctx context.Context) ([]byte, error) {
	b.have = copy(b.buf, b.buf[b.used:b.have])
	for b.used = 0; ; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if b.eof || b.have == blockMax {
			if b.used = b.have; b.used == 0 {
				return nil, io.EOF
			}
			return b.buf[:b.used], nil
		}
		if b.have == len(b.buf) {
			b.buf = append(b.buf, make([]byte, len(b.buf))...)
		}
		fresh, err := b.fill()
		if err != nil {
			return nil, err
		}
		if i := bytes.LastIndexByte(fresh, '\n'); i >= 0 {
			b.used = b.have - len(fresh) + i + 1
			return b.buf[:b.used], nil
		}
	}
}

// fill reads once and returns what it read.
func (b *blockReader) fill() ([]byte, error) {
	n, err := b.r.Read(b.buf[b.have:])
	fresh := b.buf[b.have : b.have+n]
	b.have += n
	if b.eof = err == io.EOF; err != nil && !b.eof {
		return nil, err
	}
	if bytes.IndexByte(fresh, 0) >= 0 {
		return nil, errBinary
	}
	return fresh, nil
}
