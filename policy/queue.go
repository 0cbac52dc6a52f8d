package policy

import (
	"context"
	"slices"
	"sync"
)

// queue lets one holder through at a time, in the order of their join.
type queue struct {
	mu      sync.Mutex
	waiting []chan struct{} // the first one's turn it is
}

// join takes the last place. named runs at that moment, so that names given in
// it have the order of the queue.
func (q *queue) join(named func()) (place chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	named()
	place = make(chan struct{})
	q.waiting = append(q.waiting, place)
	if len(q.waiting) == 1 {
		close(place)
	}
	return place
}

// wait returns when it is the place's turn, or with an error when ctx ended.
func (q *queue) wait(ctx context.Context, place chan struct{}) error {
	select {
	case <-place:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// leave gives up a place, at its turn or before.
func (q *queue) leave(place chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, place)
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if i == 0 && len(q.waiting) > 0 {
		close(q.waiting[0])
	}
}
