package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// timeoutError is why the context of one attempt ends. Each attempt has its
// own, so that the timeout of an outer call is not taken for this one's.
type timeoutError struct{ limit time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("its limit of %s passed", e.limit) }

// limit of one attempt: the tool's or the call's, whichever is shorter; 0 for
// none.
func (r *run) limit() time.Duration {
	limit := r.tool.Timeout
	if own := r.timeout; own > 0 && (limit <= 0 || own < limit) {
		limit = own
	}
	return max(limit, 0)
}

// timed is one attempt under its limit. What a tool says itself about its
// failure survives.
func (r *run) timed(ctx context.Context) (json.RawMessage, error) {
	limit := r.limit()
	if limit == 0 {
		return r.handle(ctx)
	}
	passed := &timeoutError{limit}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, passed)
	defer cancel()
	value, err := r.handle(ctx)
	if err != nil && context.Cause(ctx) == passed && ownError(err) == nil {
		return nil, &Error{Code: ToolTimeout, Message: fmt.Sprintf("%s did not end within its limit of %s", r.call.Tool, limit)}
	}
	return value, err
}

// pauses before the second and the third attempt of an idempotent tool.
var pauses = [...]time.Duration{100 * time.Millisecond, 400 * time.Millisecond}

// again reports whether to try once more after n+1 attempts, once the pause
// before that has passed.
func (r *run) again(ctx context.Context, n int) bool {
	own := ownError(r.err)
	if !r.tool.Idempotent || own == nil || !own.Retryable || n >= len(pauses) {
		return false
	}
	t := time.NewTimer(jittered(pauses[n]))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// jittered is d, a quarter more or less, so that calls which failed together
// do not return together.
func jittered(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2) }
