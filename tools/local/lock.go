package local

import (
	"context"
	"sync"
)

// pathLocks serialises changes of one file within this process, across all
// sessions.
var pathLocks = keyedLocks{held: map[string]*keyedLock{}}

type keyedLocks struct {
	mu   sync.Mutex
	held map[string]*keyedLock
}

type keyedLock struct {
	turn    chan struct{} // holds one token while free
	waiting int
}

// lock waits for its turn at key, or for the end of ctx.
func (l *keyedLocks) lock(ctx context.Context, key string) (unlock func(), err error) {
	l.mu.Lock()
	k := l.held[key]
	if k == nil {
		k = &keyedLock{turn: make(chan struct{}, 1)}
		k.turn <- struct{}{}
		l.held[key] = k
	}
	k.waiting++
	l.mu.Unlock()
	select {
	case <-k.turn:
		return func() { k.turn <- struct{}{}; l.leave(key, k) }, nil
	case <-ctx.Done():
		l.leave(key, k)
		return nil, ctx.Err()
	}
}

func (l *keyedLocks) leave(key string, k *keyedLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.waiting--; k.waiting == 0 {
		delete(l.held, key)
	}
}
