package tools

import (
	"context"
	"sync"
)

// family are the calls that the body of one call makes.
type family struct {
	mu    sync.Mutex
	calls int
	over  bool
	open  sync.WaitGroup
}

// next numbers the calls that have no id of their own.
func (f *family) next() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	return f.calls
}

// join adds a call; false means that the parent's body has ended. Else leave
// must follow.
func (f *family) join() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return false
	}
	f.open.Add(1)
	return true
}

// end admits no more calls and waits for those that run: a body has not stopped
// as long as a call runs that it made.
func (f *family) end() {
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	f.open.Wait()
}

// join makes a call one that c makes. No Call, and one that an embedder made
// up, wait for nobody.
func (c *Call) join() bool { return c == nil || c.below == nil || c.below.join() }

// leave says that a call which has joined is over.
func (c *Call) leave() {
	if c != nil && c.below != nil {
		c.below.open.Done()
	}
}

// belong refuses what a body left behind wants to do.
func (e *execution) belong(context.Context) *Error {
	if e.orphan {
		return &Error{Code: AbortedBeforeDispatch, Message: "not started: the call that makes it has ended"}
	}
	return nil
}

// under is the registry for a call of parent's body that was asked of r: never
// a wider one than the parent's.
func (r *Registry) under(parent *Call) *Registry {
	if parent == nil || parent.registry == nil {
		return r
	}
	for at := r; at != parent.registry; at = at.view.parent {
		if at.view == nil {
			return parent.registry
		}
	}
	return r
}
