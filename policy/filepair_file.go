package policy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// pairPoll is how often a file is looked at while it has nothing to say.
const pairPoll = 50 * time.Millisecond

// pairFile is one file of the pair: a regular file or a named pipe, and still
// the one that its path names.
type pairFile struct {
	path string
	file *os.File
	info fs.FileInfo
	// inside says that what was read of a pipe ended inside of a line.
	inside bool
}

// openPairFile opens the file at path, and makes a regular one that is missing.
// A pipe is open in both directions, so that neither end waits for a peer.
func openPairFile(path string) (*pairFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|pairFlags, 0o600)
	if err != nil {
		return nil, pairError(path, err)
	}
	p := &pairFile{path: path, file: f}
	if p.info, err = f.Stat(); err == nil {
		err = p.check()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return p, nil
}

// check says whether the path still names this file, and not by a link.
func (p *pairFile) check() error {
	named, err := os.Lstat(p.path)
	switch {
	case err != nil:
		return pairError(p.path, err)
	case !named.Mode().IsRegular() && !(pipesWork && p.isPipe()):
		return &FilePairError{p.path, "it is neither a regular file nor a named pipe"}
	case !os.SameFile(named, p.info):
		return &FilePairError{p.path, "it was replaced; append to it instead"}
	}
	if reason := notOursAlone(named); reason != "" {
		return &FilePairError{p.path, reason}
	}
	return nil
}

func (p *pairFile) isPipe() bool { return p.info.Mode()&fs.ModeNamedPipe != 0 }

// write writes all of line unless ctx ends or the file fails first, and says
// how much it wrote. A full pipe that nobody reads makes it wait.
func (p *pairFile) write(ctx context.Context, line []byte) (written int, err error) {
	if err := p.check(); err != nil {
		return 0, err
	}
	for {
		n, err := p.tryWrite(line[written:])
		written += n
		if err != nil || written == len(line) {
			return written, err
		}
		if err := pause(ctx); err != nil {
			return written, err
		}
	}
}

// fresh returns the lines that are written from now on.
func (p *pairFile) fresh(ctx context.Context) (*answerLines, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.isPipe() {
		return p.drained(ctx)
	}
	info, err := p.file.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	lines := &answerLines{path: p.path, read: p.readFrom(size)}
	if size > 0 {
		var last [1]byte
		if _, err := p.file.ReadAt(last[:], size-1); err != nil {
			return nil, err
		}
		lines.begun = last[0] != '\n'
	}
	return lines, nil
}

// drained drops what is in the pipe.
func (p *pairFile) drained(ctx context.Context) (*answerLines, error) {
	buf := make([]byte, 4096)
	for ctx.Err() == nil {
		n, err := p.readPipe(buf)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
	}
	return &answerLines{path: p.path, read: p.readPipe, begun: p.inside}, ctx.Err()
}

func (p *pairFile) readPipe(b []byte) (int, error) {
	n, err := p.tryRead(b)
	if n > 0 {
		p.inside = b[n-1] != '\n'
	}
	return n, err
}

// readFrom reads a regular file from an offset on, as it grows.
func (p *pairFile) readFrom(offset int64) func([]byte) (int, error) {
	return func(b []byte) (int, error) {
		if err := p.check(); err != nil {
			return 0, err
		}
		info, err := p.file.Stat()
		if err != nil {
			return 0, err
		}
		if info.Size() < offset {
			return 0, &FilePairError{p.path, fmt.Sprintf("it was cut to %d bytes; append to it instead", info.Size())}
		}
		n, err := p.file.ReadAt(b, offset)
		offset += int64(n)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return n, err
	}
}

// pause waits for a moment, or returns when ctx ends.
func pause(ctx context.Context) error {
	t := time.NewTimer(pairPoll)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
