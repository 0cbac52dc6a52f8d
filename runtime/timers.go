package runtime

import (
	"container/heap"
	"fmt"
	"math"
	"time"

	"github.com/dop251/goja"
)

// timer is one armed setTimeout, setInterval or setImmediate.
type timer struct {
	id       int64
	at       time.Duration // after the start of the run
	order    int64         // among equal times
	interval time.Duration // 0: once
	callback goja.Callable
	args     []goja.Value
	index    int // in the heap
}

// timers is a heap by time. The zero value is ready to use.
type timers struct {
	heap timerHeap
	byID map[int64]*timer
	last int64
	seq  int64
}

func (t *timers) add(x *timer) int64 {
	if t.byID == nil {
		t.byID = make(map[int64]*timer)
	}
	t.last++
	x.id = t.last
	t.byID[x.id] = x
	t.push(x)
	return x.id
}

func (t *timers) push(x *timer) {
	t.seq++
	x.order = t.seq
	heap.Push(&t.heap, x)
}

func (t *timers) remove(id int64) {
	if x := t.byID[id]; x != nil {
		delete(t.byID, id)
		heap.Remove(&t.heap, x.index)
	}
}

// next returns the time of the first timer.
func (t *timers) next() (time.Duration, bool) {
	if len(t.heap) == 0 {
		return 0, false
	}
	return t.heap[0].at, true
}

// due takes the first timer if its time has come, and arms an interval again.
func (t *timers) due(now time.Duration) *timer {
	if at, any := t.next(); !any || at > now {
		return nil
	}
	x := heap.Pop(&t.heap).(*timer)
	if x.interval == 0 {
		delete(t.byID, x.id)
		return x
	}
	x.at = now + x.interval
	t.push(x)
	return x
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].order < h[j].order
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	x.(*timer).index = len(*h)
	*h = append(*h, x.(*timer))
}
func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return x
}

// arm is setTimeout, setInterval and setImmediate.
func (w *world) arm(name string, repeat, delayed bool) func(goja.FunctionCall) goja.Value {
	return func(call goja.FunctionCall) goja.Value {
		callback, ok := goja.AssertFunction(call.Argument(0))
		if !ok {
			panic(w.vm.NewTypeError("%s: the first argument must be a function", name))
		}
		if len(w.timers.heap) >= w.program.Limits.Timers {
			panic(w.rangeError(fmt.Sprintf("%s: more than %d timers at one time", name, w.program.Limits.Timers)))
		}
		delay, rest := time.Duration(0), call.Arguments[1:]
		if delayed {
			delay = milliseconds(call.Argument(1))
			rest = rest[min(1, len(rest)):]
		}
		x := &timer{callback: callback, at: time.Since(w.start) + delay, args: append([]goja.Value(nil), rest...)}
		if repeat {
			x.interval = delay
		}
		return w.vm.ToValue(w.timers.add(x))
	}
}

// milliseconds reads a delay as Node does: at least 1, and 1 for nonsense.
func milliseconds(v goja.Value) time.Duration {
	ms := v.ToFloat()
	if !(ms >= 1 && ms <= math.MaxInt32) {
		ms = 1
	}
	return time.Duration(ms * float64(time.Millisecond))
}

func (w *world) disarm(call goja.FunctionCall) goja.Value {
	if id := call.Argument(0); goja.IsNumber(id) || goja.IsString(id) {
		w.timers.remove(id.ToInteger())
	}
	return goja.Undefined()
}
