package policy

import (
	"context"
	"sync"
	"time"
)

// HumanClock measures the time during which at least one question waited for a
// person. The zero value is ready; it is safe for concurrent use.
type HumanClock struct {
	mu      sync.Mutex
	waiting int
	since   time.Time
	total   time.Duration
}

type humanClockKey struct{}

// WithHumanClock makes questions asked under the context run c.
func WithHumanClock(ctx context.Context, c *HumanClock) context.Context {
	return context.WithValue(ctx, humanClockKey{}, c)
}

// HumanTime returns a function that says for how long questions under ctx
// waited for a person so far; always 0 without a clock.
func HumanTime(ctx context.Context) func() time.Duration { return clockOf(ctx).Elapsed }

func clockOf(ctx context.Context) *HumanClock {
	if c, ok := ctx.Value(humanClockKey{}).(*HumanClock); ok {
		return c
	}
	return new(HumanClock)
}

// Elapsed is the time so far, the present wait included.
func (c *HumanClock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting > 0 {
		return c.total + time.Since(c.since)
	}
	return c.total
}

// pause starts a wait and returns the function that ends it.
func (c *HumanClock) pause() func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == 0 {
		c.since = time.Now()
	}
	c.waiting++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.waiting--; c.waiting == 0 {
			c.total += time.Since(c.since)
		}
	}
}
