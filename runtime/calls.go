package runtime

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/dop251/goja"
)

// The codes of calls that are refused before the host sees them.
const (
	codeInvalidArgs   = "INVALID_ARGS"
	codeValueTooLarge = "VALUE_TOO_LARGE"
)

// pendingCall is a call that has no answer yet.
type pendingCall struct {
	Call
	resolve, reject func(any) error
}

// books are kept of one run's host calls.
type books struct {
	limits    Limits
	made      int // refused ones too
	submitted int
	queue     []*pendingCall
	flying    map[int]*pendingCall
}

func (b *books) inFlight() int { return len(b.flying) }

func (b *books) answered(call *pendingCall) { delete(b.flying, call.N) }

// ready takes the next call that may be handed to the host.
func (b *books) ready() *pendingCall {
	if len(b.queue) == 0 || len(b.flying) >= b.limits.Unanswered {
		return nil
	}
	call := b.queue[0]
	b.queue[0] = nil
	b.queue = b.queue[1:]
	if b.flying == nil {
		b.flying = make(map[int]*pendingCall)
	}
	b.flying[call.N] = call
	return call
}

func (b *books) unanswered() []int {
	var numbers []int
	for n := range b.flying {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	return numbers
}

func (b *books) notStarted() []int {
	var numbers []int
	for _, call := range b.queue {
		numbers = append(numbers, call.N)
	}
	return numbers
}

// within returns r, or what takes its place when it has more bytes than limit.
func (r Reply) within(limit int, host *Host) Reply {
	size := len(r.Value)
	if r.Error != nil {
		size = len(r.Error.Class) + len(r.Error.Message) + len(r.Error.Fields)
	}
	if size <= limit {
		return r
	}
	return Reply{Error: &CallError{
		Class:   host.refusalClass(),
		Message: fmt.Sprintf("the answer of the call has %d bytes, at most %d are taken: ask for less", size, limit),
		Fields:  json.RawMessage(`{"code":"` + codeValueTooLarge + `"}`),
	}}
}

// refusalClass is the class of errors that the engine itself rejects calls
// with: the first one of the host.
func (h *Host) refusalClass() string {
	if len(h.ErrorClasses) > 0 {
		return h.ErrorClasses[0]
	}
	return "Error"
}

// hostFunction returns the native body of a function named name.
func (w *world) hostFunction(name string) func(goja.FunctionCall) goja.Value {
	return func(call goja.FunctionCall) goja.Value { return w.call(name, call.Argument(0)) }
}

// call makes one host call and returns its promise.
func (w *world) call(name string, argument goja.Value) goja.Value {
	w.check()
	w.books.made++
	if w.books.made > w.program.Limits.Calls {
		w.stop(&Failure{Kind: CallLimit, Message: fmt.Sprintf("the program made more than %d calls", w.program.Limits.Calls)})
		w.check()
	}
	promise, resolve, reject := w.vm.NewPromise()
	args, err := w.encoder(w.program.Limits.CallBytes).encode("args", argument)
	switch {
	case err != nil && err.tooLarge, len(args) > w.program.Limits.CallBytes:
		w.refuse(reject, codeValueTooLarge, fmt.Sprintf("%s: the arguments are larger than %d bytes", name, w.program.Limits.CallBytes))
		return w.vm.ToValue(promise)
	case err != nil:
		w.refuse(reject, codeInvalidArgs, name+": "+err.Error())
		return w.vm.ToValue(promise)
	case args == nil:
		args = []byte("{}")
	}
	w.usage.BytesOut += int64(len(args))
	w.books.submitted++
	p := &pendingCall{Call: Call{N: w.books.submitted, Name: name, Args: args}, resolve: resolve, reject: reject}
	p.Line, p.Column = w.caller()
	w.books.queue = append(w.books.queue, p)
	w.startReady()
	return w.vm.ToValue(promise)
}

// startReady hands calls to the host while it may have more. The host's time is
// not the program's: the compute clock stands still meanwhile.
func (w *world) startReady() {
	for p := w.books.ready(); p != nil; p = w.books.ready() {
		w.leave()
		var answered atomic.Bool
		w.host.Start(w.calls, p.Call, func(r Reply) {
			if answered.CompareAndSwap(false, true) {
				w.inbox.put(completion{p, r})
			}
		})
		w.enter()
		w.check()
	}
}

// caller is the position of the statement that is being executed.
func (w *world) caller() (line, column int) {
	var few [4]goja.StackFrame
	for _, depth := range []int{2, 32} {
		for _, f := range w.vm.CaptureCallStack(depth, few[:0]) {
			if f.SrcName() != w.program.Name {
				continue
			}
			at := f.Position()
			if line, column = w.places.source(at.Line, at.Column); line != 0 {
				return line, column
			}
		}
	}
	return 0, 0
}

// answer settles the promise of a call, and lets a waiting one start.
func (w *world) answer(c completion) *Failure {
	w.startReady()
	err := w.deliver(c.call, c.reply)
	if err != nil {
		return w.broke(err)
	}
	return nil
}

func (w *world) deliver(p *pendingCall, r Reply) error {
	r = r.within(w.program.Limits.CallBytes, &w.host)
	if r.Error != nil {
		return p.reject(w.hostError(p, r.Error))
	}
	if r.Value == nil {
		return p.resolve(goja.Undefined())
	}
	w.usage.BytesIn += int64(len(r.Value))
	value, err := w.decoder().decode(r.Value)
	if err != nil {
		return p.reject(w.hostError(p, &CallError{Message: p.Name + ": the host's value cannot be read: " + err.Error()}))
	}
	return p.resolve(value)
}
