package runtime

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// The environment variable and its value that ask a program to become a worker.
const (
	workerEnv      = "DSH_RUN_WORKER"
	workerProtocol = "1"
)

// IsWorker says whether this process was started to be a worker.
func IsWorker() bool {
	asked, ok := os.LookupEnv(workerEnv)
	return ok && asked != ""
}

// A worker begins on one processor, where a reply reaches the program without
// a change of threads, and where Go's monitor thread preempts the program for
// the watchdogs. A program that computes for long gets a second one, for the
// collector and so that what cannot be preempted delays nothing.
const (
	callingProcs   = 1
	computingProcs = 2
	widenEvery     = 50 * time.Millisecond
)

// workerStack is where a runaway recursion of native code ends.
const workerStack = 64 << 20

// ServeWorker makes this process the worker that its parent asked for: warm
// up, lock down, run one program, end. lockDown must leave the process unable
// to do anything but compute and use what is open. ServeWorker never returns;
// a process that no parent asked ends with a sentence on stderr and code 125.
//
// It is for [github.com/dsh-run/dsh/runtime/worker].
func ServeWorker(lockDown func() error) {
	// An init function is tied to the main thread, which would make every
	// call change threads.
	go serveWorker(lockDown, workerKit{warm: warmWorker, engine: newWorkerEngine})
	select {}
}

// A workerKit is the engine that a worker serves.
type workerKit struct {
	warm   func()
	engine func(*worker, Limits) Engine
}

func serveWorker(lockDown func() error, kit workerKit) {
	conn, hello, err := adoptParent()
	if err != nil {
		os.Stderr.WriteString("dsh-run worker: " + err.Error() + "\n")
		os.Exit(exitUnfit)
	}
	goruntime.GOMAXPROCS(callingProcs)
	debug.SetMaxStack(workerStack)
	debug.SetTraceback("none")
	w := &worker{kit: kit, in: conn.reader, pending: map[int]func(Reply){}}
	w.out.to = conn
	kit.warm()
	if err := lockDown(); err != nil {
		w.out.commit(appendFrame(w.out.begin(), frameFailed, 0, err.Error()))
		os.Exit(exitUnfit)
	}
	w.out.commit(appendFrame(w.out.begin(), frameReady, 0, hello))
	w.serve()
}

// A worker is the child's side of one run.
type worker struct {
	kit  workerKit
	in   *frameReader
	out  outbox
	stop context.CancelCauseFunc

	mu        sync.Mutex
	pending   map[int]func(Reply)
	abandoned bool
	watching  sync.Once
}

func (w *worker) serve() {
	w.in.limit = math.MaxInt // the parent is trusted, and its program may have long args
	f, err := w.in.next()
	if err != nil || f.kind != frameRun {
		leave(err)
	}
	program, host, err := parseRun(f.body)
	if err != nil {
		os.Stderr.WriteString("dsh-run worker: the program cannot be decoded: " + err.Error() + "\n")
		exitNow(exitUnfit)
	}
	debug.SetMemoryLimit(program.Limits.Memory / 4 * 3)
	ctx, stop := context.WithCancelCause(context.Background())
	w.stop = stop
	w.out.kick = make(chan struct{}, 1)
	go w.write()
	go w.read()
	widen(cpuTime())
	w.run(ctx, program, host)
}

// run runs the program, reports, and waits to be killed.
func (w *worker) run(ctx context.Context, program Program, host Host) {
	begin := time.Now()
	host.Start = w.start
	host.Log = w.log
	// The parent keeps the wall clock, since it knows of people: here all time
	// is theirs.
	host.Human = func() time.Duration { return time.Since(begin) }
	outcome, err := w.kit.engine(w, program.Limits).Run(ctx, program, host)
	if err != nil {
		os.Stderr.WriteString("dsh-run worker: " + err.Error() + "\n")
		exitNow(exitUnfit)
	}
	buf, err := appendDone(w.out.begin(), outcome)
	if err != nil {
		os.Stderr.WriteString("dsh-run worker: the outcome cannot be encoded: " + err.Error() + "\n")
		exitNow(exitUnfit)
	}
	w.out.commit(buf)
	select {}
}

// widen looks whether the worker has computed most of the time since it had
// used so much processor time.
func widen(used time.Duration) {
	now := cpuTime()
	if now-used > widenEvery*3/4 {
		goruntime.GOMAXPROCS(computingProcs)
		return
	}
	time.AfterFunc(widenEvery, func() { widen(now) })
}

func (w *worker) write() {
	for range w.out.kick {
		w.out.flush()
	}
}

// read takes the parent's frames; when the parent is gone, so is the worker.
func (w *worker) read() {
	for {
		f, err := w.in.next()
		if err != nil {
			leave(err)
		}
		switch f.kind {
		case frameReply:
			if reply := w.forget(int(f.id)); reply != nil {
				reply(parseReply(f.body))
			}
			if !w.in.buffered() {
				// Let the program go on before this thread blocks.
				goruntime.Gosched()
			}
		case frameStop:
			w.stop(&Failure{Kind: Abort, Message: "stopped by the parent"})
		default:
			leave(breachf("frame kind"))
		}
	}
}

func (w *worker) forget(n int) func(Reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	reply := w.pending[n]
	delete(w.pending, n)
	return reply
}

func (w *worker) start(ctx context.Context, call Call, reply func(Reply)) {
	w.watching.Do(func() { context.AfterFunc(ctx, w.abandon) })
	w.mu.Lock()
	if w.abandoned {
		w.mu.Unlock()
		reply(runOver)
		return
	}
	w.pending[call.N] = reply
	w.mu.Unlock()
	w.out.commit(appendCall(w.out.begin(), call))
}

var runOver = Reply{Error: &CallError{Message: "the run is over"}}

// abandon answers what the engine would await: the parent awaits the real
// answers itself.
func (w *worker) abandon() {
	w.mu.Lock()
	pending := w.pending
	w.pending, w.abandoned = map[int]func(Reply){}, true
	w.mu.Unlock()
	for _, reply := range pending {
		reply(runOver)
	}
}

func (w *worker) log(l Line) {
	l.Text = strings.ToValidUTF8(l.Text, "\uFFFD")
	w.out.commit(appendLog(w.out.begin(), l))
}

func (w *worker) started() {
	w.out.commit(appendFrame(w.out.begin(), frameStarted, 0, ""))
}

// overrun ends a worker whose program does not yield. Nothing more is said: a
// lock may be held by what does not yield.
func (w *worker) overrun(kind FailureKind, clock Clock) { exitNow(exitCodeFor(kind, clock)) }

func leave(err error) {
	if err == nil || !errors.Is(err, io.EOF) {
		exitNow(exitUnfit)
	}
	exitNow(0)
}

// newWorkerEngine is the engine inside the worker.
func newWorkerEngine(w *worker, limits Limits) Engine {
	return newInProcess(hooks{started: w.started, overrun: w.overrun, softMemory: limits.Memory / 10 * 9})
}

// warmWorker does once, before the lock, what the first program would pay for.
func warmWorker() {
	newInProcess(hooks{}).warm()
	var buf []byte
	host := Host{Object: "tools", Functions: []Function{{Path: []string{"a"}}}, ErrorClasses: []string{"E"}}
	buf, _ = appendRun(buf, &Program{Source: "1"}, Limits{}.WithDefaults(), &host)
	_, _, _ = parseRun(buf[frameHeader:])
	_, _ = appendDone(nil, Outcome{Failure: &Failure{Kind: Exception}, Unanswered: []int{1}})
}
