package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// errTimeout marks the timeout of the built-in wrapper among other causes.
var errTimeout = errors.New("the tool's timeout passed")

// timeout ends one attempt after the tool's own limit.
func (e *execution) timeout(next Body) Body {
	limit := e.tool.Timeout
	if limit <= 0 {
		return next
	}
	return func(ctx context.Context, call *Call) (json.RawMessage, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
		defer cancel()
		value, err := next(ctx, call)
		if err != nil && context.Cause(ctx) == errTimeout {
			var own *Error
			if !errors.As(err, &own) {
				return nil, &Error{Code: ToolTimeout, Message: fmt.Sprintf("%s did not end within its limit of %s", call.Tool, limit)}
			}
		}
		return value, err
	}
}

// attempts of an idempotent tool.
const attempts = 3

// retry tries an idempotent tool again after a failure that says it is worth
// it.
func (e *execution) retry(next Body) Body {
	if !e.tool.Idempotent {
		return next
	}
	return func(ctx context.Context, call *Call) (value json.RawMessage, err error) {
		for range attempts {
			value, err = next(ctx, call)
			var own *Error
			if err == nil || ctx.Err() != nil || !errors.As(err, &own) || !own.Retryable {
				break
			}
		}
		return value, err
	}
}
