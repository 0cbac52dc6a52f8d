package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// A child is one worker process, seen from the parent.
type child struct {
	cmd         *exec.Cmd
	conn        *os.File // the parent's end of the socket pair
	in          *frameReader
	confinement Confinement
	words       *lastOutput
	base        memoryStatus // at READY

	mu     sync.Mutex // held while the process id must stay this worker's
	reaped bool
	death  death
	peak   int64 // memory that was needed beyond base; 0: unknown
}

// memoryStatus are figures of /proc/<pid>/status in bytes.
type memoryStatus struct{ data, resident, peak int64 }

// helloBytes is the length of the nonce that ties a worker to its parent.
const helloBytes = 16

// idleFrame bounds what a worker may say before it has a program.
const idleFrame = 64 << 10

// unfitError is a worker's own reason for not serving.
type unfitError struct{ reason string }

func (e *unfitError) Error() string { return e.reason }

// startError is the starter's reason for not starting.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// startChild starts a worker and waits until it is ready.
func startChild(o *ProcessOptions) (*child, error) {
	hello := make([]byte, helloBytes)
	_, _ = rand.Read(hello)
	c, err := spawnChild(o, hello)
	if err != nil {
		return nil, err
	}
	if err := c.awaitReady(hello, o); err != nil {
		c.reap()
		return nil, err
	}
	return c, nil
}

func spawnChild(o *ProcessOptions, hello []byte) (*child, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, fmt.Errorf("runtime: make the socket pair of a worker: %w", err)
	}
	defer theirs.Close()
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("runtime: make the stderr pipe of a worker: %w", err)
	}
	defer errWrite.Close()
	exe := o.Binary
	if exe == "" {
		exe = selfExe
	}
	cmd := &exec.Cmd{Path: exe, Args: []string{"dsh-run-worker"}, Dir: "/",
		Env: []string{workerEnv + "=" + workerProtocol}, Stderr: errWrite, ExtraFiles: []*os.File{theirs}}
	if _, err := ours.Write(appendFrame(nil, frameHello, 0, hello)); err != nil {
		ours.Close()
		errRead.Close()
		return nil, fmt.Errorf("runtime: greet a worker: %w", err)
	}
	confinement, err := o.Start(cmd, exe)
	if err != nil {
		ours.Close()
		errRead.Close()
		return nil, &startError{err}
	}
	confinement.Isolation = Process
	return &child{cmd: cmd, conn: ours, confinement: confinement, in: newFrameReader(ours, idleFrame),
		words: collectOutput(errRead)}, nil
}

// awaitReady reads the worker's first frame.
func (c *child) awaitReady(hello []byte, o *ProcessOptions) error {
	_ = c.conn.SetReadDeadline(time.Now().Add(o.ReadyTimeout))
	f, err := c.in.next()
	_ = c.conn.SetReadDeadline(time.Time{})
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the worker was not ready within %v: the program that it runs must import %s%s",
			o.ReadyTimeout, workerPackage, workerHint)
	case errors.As(err, new(*breach)):
		return err
	case err != nil:
		c.reap()
		return fmt.Errorf("the worker ended before it was ready (%s): the program that it runs must import %s%s",
			c.death.how(), workerPackage, workerHint)
	case f.kind == frameFailed:
		return &unfitError{clip(string(f.body), 2000)}
	case f.kind != frameReady || string(f.body) != string(hello):
		return breachf("another first frame than the one that was asked for")
	}
	c.base, err = readMemory(c.cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("runtime: read the memory of a worker: %w", err)
	}
	return nil
}

const (
	workerPackage = "github.com/dsh-run/dsh/runtime/worker"
	workerHint    = ", or ProcessOptions.Binary must name a worker binary that does"
)

// reap kills the worker, waits for its end and learns how it came.
func (c *child) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	c.reaped = true
	if m, err := readMemory(c.cmd.Process.Pid); err == nil && c.base.resident > 0 {
		c.peak = max(0, m.peak-c.base.resident)
	}
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
	c.death = deathOf(c.cmd.ProcessState)
	c.death.words = c.words.wait()
	_ = c.conn.Close()
}

// limitRun sets the kernel's limits for the run that begins.
func (c *child) limitRun(limits Limits) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return errors.New("the worker process was ended")
	}
	return limitProcess(c.cmd.Process.Pid, limits, c.base)
}

// lastOutput keeps the head and the tail of a stream.
type lastOutput struct {
	done chan struct{}
	head []byte
	tail []byte
}

const keptOutput = 4 << 10

func collectOutput(from *os.File) *lastOutput {
	l := &lastOutput{done: make(chan struct{})}
	go l.collect(from)
	return l
}

func (l *lastOutput) collect(from *os.File) {
	defer close(l.done)
	defer from.Close()
	chunk := make([]byte, 512)
	for {
		n, err := from.Read(chunk)
		l.add(chunk[:n])
		if err != nil {
			return
		}
	}
}

func (l *lastOutput) add(part []byte) {
	room := min(keptOutput-len(l.head), len(part))
	l.head = append(l.head, part[:room]...)
	l.tail = append(l.tail, part[room:]...)
	if over := len(l.tail) - keptOutput; over > 0 {
		l.tail = append(l.tail[:0], l.tail[over:]...)
	}
}

// wait returns what was kept. The stream has ended when its only writer has.
func (l *lastOutput) wait() string {
	<-l.done
	return strings.ToValidUTF8(string(l.head)+string(l.tail), "\uFFFD")
}

// A spare is a worker that is being started or is ready, until it is gone.
type spare struct {
	ready chan struct{} // closed when child or err is set
	child *child
	err   error
}

// await waits until the worker is ready or failed, not longer than ctx.
func (s *spare) await(ctx context.Context) error {
	select {
	case <-s.ready:
		return s.err
	default:
	}
	select {
	case <-s.ready:
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
