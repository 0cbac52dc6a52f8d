package ptc

import (
	"context"
	"sync"
)

// lane orders the sub-calls of one program.
type lane struct {
	ctx context.Context
	cap int // bodies at one time

	mu        sync.Mutex
	changed   *sync.Cond
	queue     []func(*slot)
	serving   bool
	submitted int // slots given out
	committed int // slots whose call has ended, always the first ones
	running   int // bodies between Enter and Commit
}

func newLane(ctx context.Context, inFlight int) *lane {
	l := &lane{ctx: ctx, cap: inFlight}
	l.changed = sync.NewCond(&l.mu)
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.changed.Broadcast()
	})
	return l
}

// submit arranges that run is called with the next slot; run walks one call
// through the pipeline. It does not block.
func (l *lane) submit(run func(*slot)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, run)
	if !l.serving {
		l.serving = true
		go l.serve()
	}
}

// serve starts the queued calls one after another, each when the one before
// has passed its before-stages.
func (l *lane) serve() {
	for {
		l.mu.Lock()
		if len(l.queue) == 0 {
			l.serving = false
			l.mu.Unlock()
			return
		}
		run := l.queue[0]
		l.queue = l.queue[1:]
		s := &slot{lane: l, ticket: l.submitted}
		l.submitted++
		l.mu.Unlock()
		go func() {
			defer s.done()
			run(s)
		}()
		s.awaitPassed()
	}
}

// slot is the place of one call in its lane. It is the call's tools.Lane.
type slot struct {
	lane      *lane
	ticket    int
	passed    bool // the next call may begin its before-stages
	entered   bool
	exclusive bool
}

func (s *slot) awaitPassed() {
	s.lane.mu.Lock()
	defer s.lane.mu.Unlock()
	for !s.passed {
		s.lane.changed.Wait()
	}
}

// Enter waits for the call's turn: for a free place when it may overlap, else
// until everything before it is committed. The class is asked when a place is
// there, so that the last answer counts.
func (s *slot) Enter(overlaps func() bool) error {
	l := s.lane
	for {
		shared := overlaps()
		if err := s.await(func() bool { return s.mayStart(shared) }); err != nil {
			return err
		}
		if overlaps() != shared {
			continue
		}
		if s.enter(shared) {
			return l.ctx.Err()
		}
	}
}

func (s *slot) mayStart(shared bool) bool {
	if shared {
		return s.lane.running < s.lane.cap
	}
	return s.lane.committed == s.ticket
}

// enter takes the place if it is still there.
func (s *slot) enter(shared bool) bool {
	l := s.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if !s.mayStart(shared) {
		return false
	}
	s.entered, s.exclusive = true, !shared
	l.running++
	if shared {
		s.pass()
	}
	return true
}

// Commit frees the place and waits until all earlier calls are committed.
func (s *slot) Commit() {
	l := s.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.entered {
		l.running--
		s.entered = false
	}
	if !s.exclusive {
		s.pass()
	}
	l.changed.Broadcast()
	for l.committed != s.ticket {
		l.changed.Wait()
	}
}

// done marks the call as committed.
func (s *slot) done() {
	l := s.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	l.committed++
	s.passed = true
	l.changed.Broadcast()
}

func (s *slot) pass() {
	s.passed = true
	s.lane.changed.Broadcast()
}

// await returns when ready holds, or with the error of the lane's context.
func (s *slot) await(ready func() bool) error {
	l := s.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	for !ready() {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		l.changed.Wait()
	}
	return nil
}
