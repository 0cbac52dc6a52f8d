package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dsh-run/dsh/policy"
)

// A probe that takes longer than eager is no verdict: when nothing else works,
// it gets patient once more, alone. Both are generous for what is tried on a
// busy machine.
const (
	eager   = 500 * time.Millisecond
	patient = 5 * time.Second
)

// slowProbeError is the end of a probe that ran out of time.
type slowProbeError struct{ limit time.Duration }

func (e *slowProbeError) Error() string {
	return fmt.Sprintf("the probe did not end within %v; is this machine overloaded? Try again", e.limit)
}

func isSlow(err error) bool {
	_, slow := errors.AsType[*slowProbeError](err)
	return slow
}

// chosen are the backends of one call with what is known of them.
type chosen struct {
	backends []backend
	scope    policy.Scope
	verdicts []error // nil until one had to be probed
}

// verdict says why a backend cannot be used; nil when it can. The first one
// that was not probed before makes all be probed.
func (c *chosen) verdict(ctx context.Context, i int) error {
	if c.verdicts == nil && c.backends[i].known(c.scope) {
		return nil
	}
	if c.verdicts == nil {
		c.verdicts = probeAll(ctx, c.backends, c.scope)
	}
	return c.verdicts[i]
}

// probeAll probes the backends side by side, and those that ran out of time
// once more, one by one, as long as no other works.
func probeAll(ctx context.Context, backends []backend, s policy.Scope) []error {
	verdicts := make([]error, len(backends))
	var group sync.WaitGroup
	for i, b := range backends {
		group.Go(func() { verdicts[i] = b.probe(ctx, s, eager) })
	}
	group.Wait()
	for i, b := range backends {
		if isSlow(verdicts[i]) && !anyNil(verdicts) {
			verdicts[i] = b.probe(ctx, s, patient)
		}
	}
	return verdicts
}

func anyNil(errs []error) bool {
	for _, err := range errs {
		if err == nil {
			return true
		}
	}
	return false
}

// withinTime runs a probe that cannot be stopped; after the limit it goes on
// by itself and nobody listens.
func withinTime[T any](ctx context.Context, limit time.Duration, probe func() (T, error)) (T, error) {
	type answer struct {
		found T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		found, err := probe()
		answered <- answer{found, err}
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var none T
	select {
	case a := <-answered:
		return a.found, a.err
	case <-timer.C:
		return none, &slowProbeError{limit}
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
