package runtime

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"
)

// How long a stopped worker may take to end by itself, with the lines that it
// still holds.
const (
	abortGrace = 50 * time.Millisecond
	wallGrace  = 100 * time.Millisecond
)

// A run is one program on one worker. The goroutine that called Run reads the
// worker's frames and starts the calls; replies come from any goroutine.
type run struct {
	ctx     context.Context
	program Program
	limits  Limits
	host    Host
	names   map[string]string
	c       *child
	out     outbox

	// hostCtx is the calls' context.
	hostCtx context.Context
	cancel  context.CancelFunc

	// Owned by the reading goroutine.
	compiled bool
	lastCall int
	started  []int
	dropped  []int // calls that came too late to be started
	done     *report
	value    []byte
	broken   error
	logs     logs

	mu       sync.Mutex
	answered *sync.Cond // signalled when open becomes empty
	open     map[int]struct{}
	stopped  *Failure // why the run was stopped, the first reason
	bytesIn  int64
	bytesOut int64
	waiting  time.Time     // since when a call is open
	waited   time.Duration // while a call was open, earlier
	killer   *time.Timer
}

func newRun(ctx context.Context, program Program, host Host) (*run, error) {
	program, host, err := prepare(program, host)
	if err != nil {
		return nil, err
	}
	r := &run{ctx: ctx, program: program, host: host, limits: program.Limits,
		names: map[string]string{}, open: map[int]struct{}{}}
	r.answered = sync.NewCond(&r.mu)
	r.logs.limit = r.limits.OutputBytes
	for _, f := range host.Functions {
		r.names[f.name()] = f.name()
	}
	return r, nil
}

// refuse says why the program is not even sent to a worker.
func (r *run) refuse() *Failure {
	if r.ctx.Err() != nil {
		return endOfContext(r.ctx)
	}
	return checkSource(r.program.Source, r.limits.Source)
}

// outcomeWithout is the outcome of a run that found no worker.
func (r *run) outcomeWithout(begin time.Time, failure *Failure) Outcome {
	return Outcome{Failure: failure, Usage: Usage{Wall: time.Since(begin)},
		Confinement: Confinement{Isolation: Process, Enforcement: EnforcementNone}}
}

// on runs the program on c.
func (r *run) on(c *child, begin time.Time) Outcome {
	r.c = c
	r.out.to = c.conn
	c.in.limit = longestFrame(r.limits)
	// The calls are told of an end after the run is: until then the worker
	// would be given their failures.
	r.hostCtx, r.cancel = context.WithCancel(context.WithoutCancel(r.ctx))
	defer r.cancel()
	defer r.watch()() // a worker that does not read blocks send
	if err := r.send(); err != nil {
		return r.outcomeWithout(begin, &Failure{Kind: EngineExit, Message: err.Error()})
	}
	r.read()
	r.end()
	return r.outcome(time.Since(begin))
}

// send limits the worker and hands it the program.
func (r *run) send() error {
	if err := r.c.limitRun(r.limits); err != nil {
		return err
	}
	buf, err := appendRun(r.out.begin(), &r.program, r.limits, &r.host)
	r.out.commit(buf)
	return err
}

// watch arms what stops the run; the returned function disarms it.
func (r *run) watch() func() {
	start := time.Now()
	var wall *time.Timer
	var once sync.Mutex // holds the first firing back until wall is set
	once.Lock()
	wall = time.AfterFunc(r.limits.Wall, func() {
		once.Lock()
		defer once.Unlock()
		if left := r.limits.Wall - (time.Since(start) - r.host.Human()); left > 0 {
			wall.Reset(left)
			return
		}
		r.stop(timeout(WallClock, r.limits.Wall), wallGrace)
	})
	once.Unlock()
	disarm := context.AfterFunc(r.ctx, func() { r.stop(endOfContext(r.ctx), abortGrace) })
	return func() {
		disarm()
		wall.Stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.killer != nil {
			r.killer.Stop()
		}
	}
}

// stop asks the worker to end and kills it after the grace.
func (r *run) stop(why *Failure, grace time.Duration) {
	r.mu.Lock()
	if r.stopped != nil {
		r.mu.Unlock()
		return
	}
	r.stopped = why
	process := r.c.cmd.Process
	r.killer = time.AfterFunc(grace, func() { _ = process.Kill() })
	r.mu.Unlock()
	r.cancel()
	r.out.commit(appendFrame(r.out.begin(), frameStop, 0, ""))
}

// read handles the worker's frames until its outcome, its end or a breach.
func (r *run) read() {
	for r.done == nil {
		f, err := r.c.in.next()
		if err == nil {
			r.out.cork()
			err = r.handle(f)
			if !r.c.in.buffered() || err != nil {
				r.out.uncork()
			}
		}
		if err != nil {
			r.broken = err
			return
		}
	}
}

func (r *run) handle(f frame) error {
	if f.kind != frameCall && f.id != 0 {
		return breachf("a frame of the kind %d with an id", f.kind)
	}
	switch f.kind {
	case frameStarted:
		if r.compiled || len(f.body) > 0 {
			return breachf("a second start of the program")
		}
		r.compiled = true
		return nil
	case frameCall:
		return r.call(f)
	case frameLog:
		return r.log(f)
	case frameDone:
		return r.finish(f)
	}
	return breachf("a frame of the kind %d", f.kind)
}

func (r *run) call(f frame) error {
	call, err := parseCall(f, r.names, r.limits)
	switch {
	case err != nil:
		return err
	case !r.compiled:
		return breachf("a call before the program started")
	case uint64(f.id) > uint64(r.limits.Calls):
		return breachf("call %d, at most %d are legal", f.id, r.limits.Calls)
	case call.N <= r.lastCall:
		return breachf("call %d after call %d", call.N, r.lastCall)
	}
	r.lastCall = call.N
	r.mu.Lock()
	if len(r.open) >= r.limits.Unanswered {
		r.mu.Unlock()
		return breachf("more than %d unanswered calls", r.limits.Unanswered)
	}
	if r.stopped != nil { // sent before the worker knew
		r.mu.Unlock()
		r.dropped = append(r.dropped, call.N)
		return nil
	}
	if len(r.open) == 0 {
		r.waiting = time.Now()
	}
	r.open[call.N] = struct{}{}
	r.bytesOut += int64(len(call.Args))
	r.mu.Unlock()
	r.started = append(r.started, call.N)
	n := call.N
	r.host.Start(r.hostCtx, call, func(reply Reply) { r.reply(n, reply) })
	return nil
}

// reply takes the host's answer to call n, the first one.
func (r *run) reply(n int, reply Reply) {
	r.mu.Lock()
	if _, ok := r.open[n]; !ok {
		r.mu.Unlock()
		return
	}
	delete(r.open, n)
	if len(r.open) == 0 {
		r.waited += time.Since(r.waiting)
		r.answered.Broadcast()
	}
	over := r.stopped != nil
	reply = reply.within(r.limits.CallBytes, &r.host)
	r.bytesIn += int64(len(reply.Value))
	r.mu.Unlock()
	if !over {
		r.out.commit(appendReply(r.out.begin(), n, reply))
	}
}

func (r *run) log(f frame) error {
	line, err := parseLog(f.body)
	switch {
	case err != nil:
		return err
	case !r.compiled:
		return breachf("a printed line before the program started")
	}
	r.logs.add(line)
	if r.host.Log != nil {
		r.host.Log(line)
	}
	return nil
}

func (r *run) finish(f frame) error {
	rep, value, err := parseDone(f.body, r.limits)
	if err != nil {
		return err
	}
	if rep.Failure == nil && !r.compiled {
		return breachf("a success before the program started")
	}
	if err := rep.checkCalls(r.wasStarted, r.openCalls(), r.limits); err != nil {
		return err
	}
	if rep.Calls < len(r.started) {
		return breachf("an outcome of %d calls after %d", rep.Calls, len(r.started))
	}
	r.done, r.value = &rep, value
	return nil
}

func (r *run) wasStarted(n int) bool {
	_, found := slices.BinarySearch(r.started, n)
	return found
}

func (r *run) openCalls() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	open := make([]int, 0, len(r.open))
	for n := range r.open {
		open = append(open, n)
	}
	return open
}

// end ends the worker and awaits the calls.
func (r *run) end() {
	r.c.reap()
	r.cancel()
	r.mu.Lock()
	for len(r.open) > 0 {
		r.answered.Wait()
	}
	r.mu.Unlock()
}

func (r *run) outcome(wall time.Duration) Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := Outcome{Failure: r.failure(), Confinement: r.c.confinement}
	use := &out.Usage
	*use = Usage{Wall: wall, Human: min(r.host.Human(), wall), Calls: len(r.started), PeakMemory: r.c.peak,
		BytesIn: r.bytesIn, BytesOut: r.bytesOut}
	if r.done != nil {
		use.Compute = min(r.done.Compute, wall)
		use.Calls = r.done.Calls
		out.NotStarted = r.done.NotStarted
		if out.Failure == nil {
			out.Value, out.Unanswered = r.value, r.done.Unanswered
		}
	} else if f := out.Failure; f.Kind == Timeout && f.Clock == ComputeClock {
		use.Compute = min(r.limits.Compute, wall)
	}
	// The worker counts those dropped as started: its own come after them.
	out.NotStarted = append(r.dropped, out.NotStarted...)
	use.Host = max(0, min(r.waited, wall-use.Compute)-use.Human)
	out.Logs, out.LogsTrimmed = r.logs.take(r.limits.OutputBytes - len(out.Value))
	return out
}

// failure is why the run failed: what stopped it comes before what the worker
// says, and that before how it died.
func (r *run) failure() *Failure {
	var broken *breach
	switch {
	case r.stopped != nil:
		return r.stopped
	case r.done != nil:
		return r.done.Failure
	case errors.As(r.broken, &broken):
		return broken.failure()
	case r.ctx.Err() != nil:
		return endOfContext(r.ctx)
	}
	d := r.c.death
	d.started = r.compiled
	if errors.Is(r.broken, io.ErrUnexpectedEOF) && d.code == 0 {
		return &Failure{Kind: Protocol, Message: "the worker process broke the protocol: it ended in the middle of a frame"}
	}
	return d.diagnose(r.limits)
}
