package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/term"
)

const terminalPath = "/dev/tty"

func haveTerminal() bool {
	tty, err := openTerminal(context.Background())
	if err != nil {
		return false
	}
	tty.Close()
	return true
}

// tty is the terminal of this process. Reading it ends with ctx, and writing
// soon after: a terminal can be stopped.
type tty struct {
	*os.File
	ctx  context.Context
	stop func() bool
}

// lastWords is how long writing may take when ctx has ended.
const lastWords = time.Second

// openTerminal opens a description of its own, so that what is set for it does
// not reach stdin or the shell.
func openTerminal(ctx context.Context) (*tty, error) {
	f, err := os.OpenFile(terminalPath, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	t := &tty{File: f, ctx: ctx}
	t.stop = context.AfterFunc(ctx, func() {
		// Where terminals take no deadline, again looks at ctx.
		_ = f.SetReadDeadline(time.Unix(1, 0))
		_ = f.SetWriteDeadline(time.Now().Add(lastWords))
	})
	return t, nil
}

func (t *tty) Close() error {
	t.stop()
	return t.File.Close()
}

// maxAnswer is how much of a line is kept.
const maxAnswer = 4096

func (t *tty) line() (string, error) {
	var line []byte
	buf := make([]byte, maxAnswer)
	for {
		var n int
		err := t.again(func() (err error) {
			n, err = t.File.Read(buf)
			return err
		})
		if end := bytes.IndexAny(buf[:n], "\r\n"); end >= 0 {
			return string(append(line, buf[:end]...)), nil
		}
		if err == nil && n == 0 {
			err = io.EOF
		}
		if err != nil {
			return "", err
		}
		line = append(line[:min(len(line), maxAnswer)], buf[:n]...)
	}
}

func (t *tty) Write(p []byte) (written int, err error) {
	err = t.again(func() error {
		n, err := t.File.Write(p[written:])
		written += n
		return err
	})
	return written, err
}

// retryEvery is how often a terminal is tried that the system cannot wait for.
const retryEvery = 20 * time.Millisecond

func (t *tty) again(try func() error) error {
	for {
		err := try()
		if !errors.Is(err, syscall.EAGAIN) {
			return err
		}
		select {
		case <-t.ctx.Done():
			return t.ctx.Err()
		case <-time.After(retryEvery):
		}
	}
}

// discard forgets what has been typed, as far as the system can.
func (t *tty) discard() { t.control(func(fd int) { _ = flushInput(fd) }) }

func (t *tty) size() screenSize {
	size := screenSize{80, 24}
	t.control(func(fd int) {
		if columns, rows, err := term.GetSize(fd); err == nil && columns > 0 && rows > 0 {
			size = screenSize{columns, rows}
		}
	})
	return size
}

// control uses the descriptor without making it wait, which Fd would do.
func (t *tty) control(f func(fd int)) {
	if raw, err := t.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}
