package runtime

import "sync"

// completion is the answer to one call on its way to the VM goroutine.
type completion struct {
	call  *pendingCall
	reply Reply
}

// inbox takes completions from any goroutine and hands them, in the order of
// their arrival, to the VM goroutine.
type inbox struct {
	mu      sync.Mutex
	waiting []completion
	ready   chan struct{} // holds a token while waiting may be non-empty
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

func (b *inbox) put(c completion) {
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// take returns what has arrived and leaves spare as the empty buffer.
func (b *inbox) take(spare []completion) []completion {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.waiting
	b.waiting = spare[:0]
	return taken
}
