package runtime

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// checkSource refuses a source before anything parses it.
func checkSource(source string, limit int) *Failure {
	if len(source) <= limit {
		return nil
	}
	return &Failure{Kind: SourceLimit, Message: fmt.Sprintf("the source has %d bytes; at most %d are taken", len(source), limit)}
}

func timeout(clock Clock, limit time.Duration) *Failure {
	message := fmt.Sprintf("the program computed for longer than its limit of %v", limit)
	if clock == WallClock {
		message = fmt.Sprintf("the run took longer than its limit of %v, calls included", limit)
	}
	return &Failure{Kind: Timeout, Clock: clock, Message: message}
}

func outOfMemory(limit int64) *Failure {
	return &Failure{Kind: MemoryLimit,
		Message: fmt.Sprintf("the program needs more memory than its limit of %d MiB: keep less in memory at one time", limit>>20)}
}

// endOfContext is the failure of a run whose context ended.
func endOfContext(ctx context.Context) *Failure {
	cause := context.Cause(ctx)
	if f := (*Failure)(nil); errors.As(cause, &f) {
		return f
	}
	return &Failure{Kind: Abort, Message: "the caller ended the run: " + cause.Error()}
}
