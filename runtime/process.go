package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	goruntime "runtime"
	"slices"
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

	open context.Context // ends with Close
	end  context.CancelCauseFunc

	mu      sync.Mutex
	spares  []*spare            // idle, the oldest first
	workers map[*spare]struct{} // all that were begun and are not gone
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
	e := &ProcessEngine{options: options, starting: make(chan struct{}, max(2, goruntime.NumCPU())), workers: map[*spare]struct{}{}}
	e.open, e.end = context.WithCancelCause(context.Background())
	return e, nil
}

// Run is as [Engine] says. Where no idle worker is left it waits for a new one
// to start. An engine that was closed refuses with an error.
func (e *ProcessEngine) Run(ctx context.Context, program Program, host Host) (Outcome, error) {
	begin := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r, err := newRun(ctx, program, host)
	if err != nil {
		return Outcome{}, err
	}
	if failure := r.refuse(); failure != nil {
		return r.outcomeWithout(begin, failure), nil
	}
	defer context.AfterFunc(e.open, func() { cancel(context.Cause(e.open)) })()
	s, err := e.take(ctx)
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
		e.discard(s)
		if later.Stop() {
			e.refill()
		}
	}()
	return r.on(s.child, begin), nil
}

// refillAfter is a little more than a warm run of a trivial program takes.
const refillAfter = 3 * time.Millisecond

var errClosed = errors.New("runtime: the engine is closed")

// startFailure is what a run says that found no worker.
func startFailure(err error) *Failure {
	var start *startError
	var unfit *unfitError
	var broken *breach
	switch {
	case errors.As(err, &broken):
		return broken.failure()
	case errors.As(err, &start):
		return &Failure{Kind: SandboxUnavailable, Message: start.Error()}
	case errors.As(err, &unfit):
		return &Failure{Kind: SandboxUnavailable, Message: unfit.Error()}
	}
	return &Failure{Kind: EngineExit, Message: err.Error()}
}

// take returns a ready worker: a spare, or a new one if none is left alive.
func (e *ProcessEngine) take(ctx context.Context) (*spare, error) {
	for {
		s, fresh, err := e.next()
		if err != nil {
			return nil, err
		}
		err = s.await(ctx)
		switch {
		case err == nil && (fresh || s.child.quiet()):
			return s, nil
		case ctx.Err() != nil:
			go e.discard(s) // which may still be starting
			return nil, ctx.Err()
		}
		e.discard(s)
		if fresh {
			return nil, err
		}
	}
}

// next returns the oldest spare, or begins a new one.
func (e *ProcessEngine) next() (s *spare, fresh bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.open.Err() != nil:
		return nil, false, errClosed
	case len(e.spares) == 0:
		return e.begin(), true, nil
	}
	s = e.spares[0]
	e.spares = slices.Delete(e.spares, 0, 1)
	return s, false, nil
}

// begin is called locked.
func (e *ProcessEngine) begin() *spare {
	s := &spare{ready: make(chan struct{})}
	e.workers[s] = struct{}{}
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
	for e.open.Err() == nil && len(e.spares) < e.options.Spares {
		e.spares = append(e.spares, e.begin())
	}
}

// discard ends a worker, once it has started.
func (e *ProcessEngine) discard(s *spare) {
	<-s.ready
	if s.child != nil {
		s.child.reap()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.workers, s)
}

// Close ends the idle workers and the runs in progress, which fail as aborted,
// and returns when no worker process is left. It does not wait for the host
// calls of those runs: their Run does.
func (e *ProcessEngine) Close() error {
	e.mu.Lock()
	e.end(&Failure{Kind: Abort, Message: "the engine was closed"})
	workers := slices.Collect(maps.Keys(e.workers))
	e.spares = nil
	e.mu.Unlock()
	for _, s := range workers {
		e.discard(s)
	}
	return nil
}
