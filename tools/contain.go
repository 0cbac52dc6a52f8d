package tools

import (
	"fmt"
	"sync"
)

// contain runs f and makes a panic an error.
func contain(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	return f()
}

// turn lets a stage call the stage inside of it: once at a time, and no longer
// when the outer one has ended. The zero value is ready.
type turn struct {
	mu      sync.Mutex
	changed sync.Cond
	running bool
	over    bool
}

func (t *turn) lock() {
	t.mu.Lock()
	if t.changed.L == nil {
		t.changed.L = &t.mu
	}
}

// take waits for the inner stage to be free. False means that the outer one
// has ended; else give must follow.
func (t *turn) take() bool {
	t.lock()
	defer t.mu.Unlock()
	for t.running && !t.over {
		t.changed.Wait()
	}
	if t.over {
		return false
	}
	t.running = true
	return true
}

func (t *turn) give() {
	t.lock()
	defer t.mu.Unlock()
	t.running = false
	t.changed.Broadcast()
}

// end says that the outer stage has ended, and waits for the inner one if it
// still runs, after telling it with leave. It reports whether it did.
func (t *turn) end(leave func()) (ran bool) {
	t.lock()
	defer t.mu.Unlock()
	t.over = true
	t.changed.Broadcast()
	if !t.running {
		return false
	}
	leave()
	for t.running {
		t.changed.Wait()
	}
	return true
}
