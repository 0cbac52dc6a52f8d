package runtime

import (
	"context"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"
)

const (
	overrunGrace = 100 * time.Millisecond
	// pollInterval bounds how often the watchdog looks at clocks that may
	// have stood still, and at the memory fuse.
	pollInterval = 10 * time.Millisecond
)

// governor holds the clocks of a run and the reason why it must end. The
// reason is sticky: goja clears its own interrupt flag when it unwinds, so
// whoever is about to enter the program again asks the governor first.
type governor struct {
	hooks  hooks
	limits Limits
	human  func() time.Duration
	start  time.Time

	entered atomic.Int64 // nanoseconds after start at which the VM goroutine began to compute; 0: it waits
	used    atomic.Int64 // nanoseconds computed before entered
	reason  atomic.Pointer[Failure]
	vm      atomic.Pointer[goja.Runtime]
	stopped chan struct{}  // closed when reason is set
	ended   chan struct{}  // closed when the run is over
	watch   sync.WaitGroup // the watchdog

	// calls is the context of the host calls. It ends after reason is set, so
	// that the program never sees calls fail because it is being stopped.
	calls       context.Context
	cancelCalls context.CancelFunc
}

func newGovernor(ctx context.Context, h hooks, limits Limits, human func() time.Duration) *governor {
	g := &governor{
		hooks: h, limits: limits, human: human, start: time.Now(),
		stopped: make(chan struct{}), ended: make(chan struct{}),
	}
	g.calls, g.cancelCalls = context.WithCancel(context.WithoutCancel(ctx))
	return g
}

// enter starts the compute clock. Only the VM goroutine calls enter and leave.
func (g *governor) enter() { g.entered.Store(int64(time.Since(g.start)) | 1) }

func (g *governor) leave() {
	g.used.Add(int64(time.Since(g.start)) - g.entered.Load())
	g.entered.Store(0)
}

func (g *governor) busy() time.Duration {
	used := g.used.Load()
	if entered := g.entered.Load(); entered != 0 {
		used += int64(time.Since(g.start)) - entered
	}
	return time.Duration(used)
}

// stop makes f the reason to end, unless there is one already.
func (g *governor) stop(f *Failure) {
	if !g.reason.CompareAndSwap(nil, f) {
		return
	}
	close(g.stopped)
	g.interrupt()
	g.cancelCalls()
}

func (g *governor) interrupt() {
	if vm := g.vm.Load(); vm != nil {
		vm.Interrupt(g.reason.Load())
	}
}

// check unwinds the program when the run must end. It is called on the VM
// goroutine only, below guard.
func (g *governor) check() {
	if g.reason.Load() != nil {
		panic(&goja.InterruptedError{})
	}
}

// supervise runs until the run is over.
func (g *governor) supervise(ctx context.Context) {
	timer := time.NewTimer(g.next())
	defer timer.Stop()
	for {
		select {
		case <-g.ended:
			return
		case <-g.stopped:
			g.insist()
			return
		case <-ctx.Done():
			g.stop(endOfContext(ctx))
		case <-timer.C:
			timer.Reset(g.next())
		}
	}
}

// insist repeats the interrupt, because what the program was unwound from may
// have swallowed it, and reports a VM that does not yield.
func (g *governor) insist() {
	for deadline := time.Now().Add(overrunGrace); time.Now().Before(deadline); {
		select {
		case <-g.ended:
			return
		case <-time.After(pollInterval):
			g.interrupt()
		}
	}
	if f := g.reason.Load(); g.hooks.overrun != nil && g.entered.Load() != 0 {
		g.hooks.overrun(f.Kind, f.Clock)
	}
}

// next stops the run when a limit was passed, and says how long none can be.
func (g *governor) next() time.Duration {
	compute := g.limits.Compute - g.busy()
	wall := g.limits.Wall - (time.Since(g.start) - g.human())
	switch {
	case compute <= 0:
		g.stop(timeout(ComputeClock, g.limits.Compute))
	case wall <= 0:
		g.stop(timeout(WallClock, g.limits.Wall))
	case g.overMemory():
		g.stop(outOfMemory(g.limits.Memory))
	}
	if g.entered.Load() == 0 {
		compute = max(compute, pollInterval)
	}
	wait := max(min(compute, wall), time.Millisecond)
	if g.hooks.softMemory > 0 {
		wait = min(wait, pollInterval)
	}
	return wait
}

func (g *governor) overMemory() bool {
	if g.hooks.softMemory <= 0 {
		return false
	}
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() > uint64(g.hooks.softMemory)
}

// finish ends the watchdog and waits for it.
func (g *governor) finish() {
	g.cancelCalls()
	close(g.ended)
	g.watch.Wait()
}
