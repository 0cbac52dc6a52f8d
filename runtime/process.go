package runtime

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	goruntime "runtime"
	"sync"
	"time"
)

// ProcessOptions configure [NewProcess].
type ProcessOptions struct {
	// Start starts cmd, which executes exe, confined so that it can open
	// nothing but what it needs to load exe. It does not wait. What it returns
	// is what the outcomes say of their confinement; its error, word for word,
	// becomes a sandbox-unavailable failure. Needed: there is no default,
	// since an unconfined worker is never right.
	Start func(cmd *exec.Cmd, exe string) (Confinement, error)
	// Binary is the path of a program that imports runtime/worker. Default:
	// this program, which must import it itself.
	Binary string
	// Spares is how many idle workers are kept ready; each costs some
	// megabytes. Negative: none. Default: 1.
	Spares int
	// ReadyTimeout bounds the start of one worker. Default: 2 s.
	ReadyTimeout time.Duration
}

// ProcessEngine runs each program in a worker process of its own that can do
// nothing but compute and talk to this process, and that is killed when it
// does not end in time. The worker is a hostile peer: everything it says is
// checked, and a breach of the protocol ends the run.
type ProcessEngine struct {
	options ProcessOptions
	// starting bounds the workers that start side by side, so that many at
	// once do not make each other miss ReadyTimeout.
	starting chan struct{}

	mu     sync.Mutex
	spares []*spare
	closed bool
}

var _ Engine = (*ProcessEngine)(nil)

var workerRegistered bool

// RegisterWorker says that this program becomes a worker when it is started as
// one. Package runtime/worker calls it; nobody else should.
func RegisterWorker() { workerRegistered = true }

// NewProcess makes an engine. It starts nothing yet: the first Run is slower
// than the later ones, which find a spare worker. It fails where no worker
// could ever serve.
func NewProcess(o *ProcessOptions) (*ProcessEngine, error) {
	var options ProcessOptions
	if o != nil {
		options = *o
	}
	if options.Start == nil {
		return nil, errors.New("runtime: ProcessOptions.Start is needed: a function that starts the worker confined")
	}
	if options.Binary == "" && !workerRegistered {
		return nil, fmt.Errorf("runtime: this program cannot be its own worker: import %s in it, or name a worker binary in ProcessOptions.Binary", workerPackage)
	}
	if options.Spares == 0 {
		options.Spares = 1
	}
	orDefault(&options.ReadyTimeout, 2*time.Second)
	return &ProcessEngine{options: options, starting: make(chan struct{}, max(2, goruntime.NumCPU()))}, nil
}

// Run is as [Engine] says. The program may need one worker more than there
// are spares: then it waits for that to start.
func (e *ProcessEngine) Run(ctx context.Context, program Program, host Host) (Outcome, error) {
	begin := time.Now()
	r, err := newRun(ctx, program, host)
	if err != nil {
		return Outcome{}, err
	}
	if failure := r.refuse(ctx); failure != nil {
		return r.outcomeWithout(begin, failure), nil
	}
	c, err := e.take(ctx)
	switch {
	case errors.Is(err, errClosed):
		return Outcome{}, err
	case err != nil && ctx.Err() != nil:
		return r.outcomeWithout(begin, endOfContext(ctx)), nil
	case err != nil:
		return r.outcomeWithout(begin, startFailure(err)), nil
	}
	// A short run is not slowed down by the start of its successor.
	later := time.AfterFunc(refillAfter, e.refill)
	defer func() {
		c.reap()
		if later.Stop() {
			e.refill()
		}
	}()
	return r.on(c, begin), nil
}

// refillAfter is a little more than a warm run of a trivial program takes.
const refillAfter = 3 * time.Millisecond

var errClosed = errors.New("runtime: the engine is closed")

// startFailure is what a run says that found no worker.
func startFailure(err error) *Failure {
	var start *startError
	var unfit *unfitError
	switch {
	case errors.As(err, &start):
		return &Failure{Kind: SandboxUnavailable, Message: start.Error()}
	case errors.As(err, &unfit):
		return &Failure{Kind: SandboxUnavailable, Message: unfit.Error()}
	}
	return &Failure{Kind: EngineExit, Message: err.Error()}
}

// take returns a ready worker: a spare, or a new one if none is left alive.
func (e *ProcessEngine) take(ctx context.Context) (*child, error) {
	for {
		s, fresh, err := e.next()
		if err != nil {
			return nil, err
		}
		c, err := s.get(ctx)
		switch {
		case err == nil && c.quiet():
			return c, nil
		case err == nil:
			c.reap()
		case fresh, ctx.Err() != nil:
			return nil, err
		}
	}
}

// next returns the oldest spare, or begins a new one.
func (e *ProcessEngine) next() (s *spare, fresh bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return nil, false, errClosed
	case len(e.spares) == 0:
		return e.begin(), true, nil
	}
	s = e.spares[0]
	e.spares = append(e.spares[:0], e.spares[1:]...)
	return s, false, nil
}

func (e *ProcessEngine) begin() *spare {
	s := &spare{ready: make(chan struct{})}
	go func() {
		e.starting <- struct{}{}
		s.child, s.err = startChild(&e.options)
		<-e.starting
		close(s.ready)
	}()
	return s
}

// refill begins as many workers as are missing.
func (e *ProcessEngine) refill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for !e.closed && len(e.spares) < e.options.Spares {
		e.spares = append(e.spares, e.begin())
	}
}

// Close ends the idle workers and returns when they are gone. Runs in progress
// go on; later ones are refused with an error.
func (e *ProcessEngine) Close() error {
	e.mu.Lock()
	spares := e.spares
	e.spares, e.closed = nil, true
	e.mu.Unlock()
	for _, s := range spares {
		s.discard()
	}
	return nil
}
