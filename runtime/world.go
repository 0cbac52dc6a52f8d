package runtime

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dop251/goja"
	"github.com/dop251/goja/parser"
)

const (
	// maxCallStack is the depth of the program's own recursion.
	maxCallStack = 4000
	// maxMessage bounds the text of a failure.
	maxMessage = 64 << 10
)

// world is one run: a JavaScript world, the loop that drives it, and the
// calls, timers and lines it has made. One goroutine, that of Run, owns it.
type world struct {
	*governor
	program Program
	host    Host

	vm       *goja.Runtime
	pristine pristine
	places   *places
	random   *rand.ChaCha8 // crypto; Math.random has a source of its own
	main     *goja.Promise
	uncaught *Failure // what a timer or microtask threw

	inbox    *inbox
	books    books
	timers   timers
	logs     logs
	classes  map[string]errorClass
	origins  map[*goja.Object]place // where the call was made that an error answered
	rejected rejections
	usage    Usage
}

func newWorld(ctx context.Context, h hooks, program Program, host Host) *world {
	return &world{
		governor: newGovernor(ctx, h, program.Limits, host.Human),
		program:  program, host: host, inbox: newInbox(),
		books: books{limits: program.Limits},
		logs:  logs{limit: program.Limits.OutputBytes},
	}
}

// run does everything from source to outcome.
func (w *world) run(ctx context.Context) Outcome {
	if ctx.Err() != nil {
		w.stop(endOfContext(ctx))
	}
	w.watch.Go(func() { w.supervise(ctx) })
	value, failure := w.evaluate()
	outcome := w.outcome(value, failure)
	w.cancelCalls()
	w.drain()
	w.finish()
	outcome.Usage = w.spent()
	return outcome
}

// evaluate returns the program's value, or why there is none.
func (w *world) evaluate() ([]byte, *Failure) {
	failure := w.begin()
	if failure == nil {
		failure = w.loop()
	}
	if failure != nil {
		return nil, failure
	}
	var value []byte
	failure = w.guard(func() *Failure {
		var f *Failure
		value, f = w.result()
		return f
	})
	return value, failure
}

// guard runs f on the compute clock and turns every way of leaving it into a
// failure. Code of the program runs below guard only.
func (w *world) guard(f func() *Failure) (failure *Failure) {
	if f := w.reason.Load(); f != nil {
		return f
	}
	w.enter()
	defer func() {
		x := recover()
		w.leave()
		switch stopped := w.reason.Load(); {
		case stopped != nil:
			failure = stopped
		case x != nil:
			failure = panicked(x)
		}
	}()
	return f()
}

// panicked is the failure of a run whose engine panicked: an allocation with an
// impossible length, or a defect.
func panicked(x any) *Failure {
	if err, ok := x.(error); ok {
		if f := unwound(err); f != nil {
			return f
		}
	}
	return &Failure{Kind: Exception, Message: shorten(fmt.Sprintf("the JavaScript engine failed: %v", x), maxMessage)}
}

// unwound is the failure behind an error that no program can catch.
func unwound(err error) *Failure {
	if overflow := (*goja.StackOverflowError)(nil); errors.As(err, &overflow) {
		return &Failure{Kind: Exception, Message: "RangeError: Maximum call stack size exceeded"}
	}
	return nil
}

// begin compiles and starts the program, up to its first wait.
func (w *world) begin() *Failure {
	return w.guard(func() *Failure {
		c, failure := compile(w.program.Name, w.program.Source, w.program.Limits.Source)
		if failure != nil {
			return failure
		}
		w.places = c.places
		if failure := w.create(); failure != nil {
			return failure
		}
		if w.reason.Load() != nil {
			return nil
		}
		if w.hooks.started != nil {
			w.hooks.started()
		}
		promise, err := w.vm.RunProgram(c.program)
		if err != nil {
			return w.broke(err)
		}
		w.main = promise.Export().(*goja.Promise)
		return nil
	})
}

// broke turns an error of goja into a failure.
func (w *world) broke(err error) *Failure {
	if f := unwound(err); f != nil {
		return f
	}
	if exception := (*goja.Exception)(nil); errors.As(err, &exception) {
		return w.thrown(exception.Value())
	}
	return &Failure{Kind: Exception, Message: shorten(err.Error(), maxMessage)}
}

// create makes the JavaScript world.
func (w *world) create() *Failure {
	vm := goja.New()
	w.vm = vm
	vm.SetMaxCallStackSize(maxCallStack)
	vm.SetParserOptions(parser.WithDisableSourceMaps) // eval would open the files that a source map names
	vm.SetTimeSource(w.now)
	vm.SetRandSource(rand.New(rand.NewPCG(w.program.Seed, 0)).Float64)
	vm.SetAsyncContextTracker(turnstile{w.governor})
	vm.SetPromiseRejectionTracker(w.rejected.track)
	w.pristine = newPristine(vm)
	w.governor.vm.Store(vm)
	args, err := w.decoder().decode(w.program.Args)
	if err != nil {
		return &Failure{Kind: Exception, Message: "args: " + err.Error()}
	}
	w.install(args)
	return nil
}

// now is the program's time: Program.Clock, going on as real time does.
func (w *world) now() time.Time { return w.program.Clock.Add(time.Since(w.start)) }

func (w *world) decoder() *decoder {
	return &decoder{vm: w.vm, pristine: &w.pristine, check: w.check}
}

func (w *world) encoder(limit int) *encoder {
	return &encoder{vm: w.vm, pristine: &w.pristine, check: w.check, limit: limit}
}

// turnstile looks at the stop reason before every microtask: goja runs them in
// a native loop that an interrupt clears but does not end.
type turnstile struct{ governor *governor }

func (turnstile) Grab() any       { return nil }
func (turnstile) Exited()         {}
func (t turnstile) Resumed(_ any) { t.governor.check() }

// loop settles what comes in until the program has ended.
func (w *world) loop() *Failure {
	var batch []completion
	for {
		if done, failure := w.settled(); done {
			return failure
		}
		batch = w.inbox.take(batch)
		if len(batch) > 0 {
			if done, failure := w.settle(batch); done {
				return failure
			}
			continue
		}
		if due := w.timers.due(time.Since(w.start)); due != nil {
			w.fire(due)
			continue
		}
		if !w.waits() {
			return &Failure{Kind: Deadlock, Message: "the program waits for a promise that nothing will settle: no call is in flight and no timer is set; look for a Promise whose resolve is never called"}
		}
	}
}

// settled reports whether the program has ended, and how.
func (w *world) settled() (bool, *Failure) {
	if f := w.reason.Load(); f != nil {
		return true, f
	}
	if w.uncaught != nil {
		return true, w.uncaught
	}
	switch w.main.State() {
	case goja.PromiseStateFulfilled:
		return true, nil
	case goja.PromiseStateRejected:
		return true, w.guard(func() *Failure { return w.thrown(w.main.Result()) })
	}
	return false, nil
}

// settle hands the answers to the program, in the order of their arrival. What
// is left when the program ends counts as answered all the same.
func (w *world) settle(batch []completion) (done bool, failure *Failure) {
	for i := range batch {
		w.books.answered(batch[i].call)
	}
	for i := range batch {
		if f := w.guard(func() *Failure { return w.answer(batch[i]) }); f != nil {
			return true, f
		}
		batch[i] = completion{}
		if done, failure = w.settled(); done {
			return done, failure
		}
	}
	return false, nil
}

// fire runs the callback of a timer.
func (w *world) fire(t *timer) {
	failure := w.guard(func() *Failure {
		if _, err := t.callback(goja.Undefined(), t.args...); err != nil {
			return w.broke(err)
		}
		return nil
	})
	if failure != nil {
		w.uncaught = failure
	}
}

// waits blocks until something can go on; false when nothing ever will.
func (w *world) waits() bool {
	var alarm <-chan time.Time
	if at, any := w.timers.next(); any {
		t := time.NewTimer(at - time.Since(w.start))
		defer t.Stop()
		alarm = t.C
	} else if w.books.inFlight() == 0 {
		return false
	}
	begun, human := time.Now(), w.human()
	select {
	case <-w.inbox.ready:
	case <-alarm:
	case <-w.stopped:
	}
	if w.books.inFlight() > 0 {
		w.usage.Host += max(0, time.Since(begun)-(w.human()-human))
	}
	return true
}

// result is the JSON of what the program returned.
func (w *world) result() ([]byte, *Failure) {
	e := w.encoder(w.program.Limits.OutputBytes)
	value, err := e.encode("value", w.main.Result())
	switch {
	case err != nil && err.tooLarge, len(value) > w.program.Limits.OutputBytes:
		return nil, &Failure{Kind: OutputLimit, Message: fmt.Sprintf("the value is larger than %d bytes: return less", w.program.Limits.OutputBytes)}
	case err != nil:
		return nil, &Failure{Kind: InvalidOutput, Message: "the returned " + err.Error()}
	}
	return value, nil
}

// outcome is taken before the calls in flight are cancelled.
func (w *world) outcome(value []byte, failure *Failure) Outcome {
	for _, c := range w.inbox.take(nil) {
		w.books.answered(c.call)
	}
	if failure == nil {
		w.warnRejections()
	}
	o := Outcome{Failure: failure, NotStarted: w.books.notStarted()}
	if failure == nil {
		o.Value = value
		o.Unanswered = w.books.unanswered()
	}
	o.Logs, o.LogsTrimmed = w.logs.take(w.program.Limits.OutputBytes - len(value))
	o.Confinement = Confinement{
		Isolation: InProcess, Enforcement: EnforcementNone,
		Reasons: []string{"the program runs inside the calling process: memory and some native operations are not bounded"},
	}
	return o
}

// drain waits for the host calls that were cancelled.
func (w *world) drain() {
	for w.books.inFlight() > 0 {
		<-w.inbox.ready
		for _, c := range w.inbox.take(nil) {
			w.books.answered(c.call)
		}
	}
}

func (w *world) spent() Usage {
	u := w.usage
	u.Compute = w.busy()
	u.Human = w.human()
	u.Wall = time.Since(w.start)
	u.Calls = w.books.made
	return u
}
