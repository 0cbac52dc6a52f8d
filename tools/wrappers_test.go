package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
)

// untilDone is a body that fails when its context ends.
func untilDone(ctx context.Context, _ *tools.Call) (json.RawMessage, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestTimeout(t *testing.T) {
	own := &tools.Error{Code: "HALF_DONE", Message: "3 of 5"}
	for _, c := range []struct {
		name       string
		tool, call time.Duration
		caller     time.Duration // when the caller cancels; 0 for never
		body       tools.Handler
		code       tools.Code
		after      time.Duration
	}{
		{"the tool's limit", 3 * time.Second, 0, 0, untilDone, tools.ToolTimeout, 3 * time.Second},
		{"the call's limit where the tool has none", 0, 2 * time.Second, 0, untilDone, tools.ToolTimeout, 2 * time.Second},
		{"a shorter limit of the call", 3 * time.Second, 2 * time.Second, 0, untilDone, tools.ToolTimeout, 2 * time.Second},
		{"a longer limit of the call does not count", 3 * time.Second, 9 * time.Second, 0, untilDone, tools.ToolTimeout, 3 * time.Second},
		{"a caller who cancels first", 3 * time.Second, 0, time.Second, untilDone, tools.Aborted, time.Second},
		{"a caller who cancels after it", time.Second, 0, 2 * time.Second, untilDone, tools.ToolTimeout, time.Second},
		{"a failure that the tool reports", time.Second, 0, 0, func(ctx context.Context, _ *tools.Call) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, own
		}, own.Code, time.Second},
		{"a failure that the tool reports to a caller who cancelled", 0, 0, time.Second, func(ctx context.Context, _ *tools.Call) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, own
		}, own.Code, time.Second},
		{"a value in time", time.Second, 0, 0, returning("1", nil), "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoad(t, policy.Ask, nil)
				r.Add(raw(tools.Tool{Timeout: c.tool}, c.body))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.caller > 0 {
					defer time.AfterFunc(c.caller, cancel).Stop()
				}
				begin := time.Now()
				result := r.Call(ctx, tools.Request{Tool: "t", Session: r.session, Timeout: c.call})
				if took := time.Since(begin); codeOf(result) != c.code || took != c.after {
					t.Fatalf("error %v after %s, want %s after %s", result.Error, took, c.code, c.after)
				}
			})
		})
	}
}

func TestTheTimeoutOfAnOuterCallAbortsTheInnerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad(t, policy.Ask, nil)
		r.Add(raw(tools.Tool{Name: "inner", Timeout: time.Hour}, untilDone))
		var inner tools.Result
		r.Add(raw(tools.Tool{Name: "outer", Timeout: time.Second}, func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
			inner = r.Call(ctx, tools.Request{ID: "c1:1", Tool: "inner", Parent: call})
			return nil, ctx.Err()
		}))
		outer := r.call(t.Context(), "outer")
		if codeOf(inner) != tools.Aborted || codeOf(outer) != tools.ToolTimeout {
			t.Fatalf("inner %v, outer %v", inner.Error, outer.Error)
		}
	})
}

func TestRetry(t *testing.T) {
	busy := &tools.Error{Code: "BUSY", Message: "later", Retryable: true}
	firm := &tools.Error{Code: "GONE", Message: "never"}
	for _, c := range []struct {
		name       string
		idempotent bool
		errs       []error // of the attempts; then success
		code       tools.Code
		ran        int
		least      time.Duration
		most       time.Duration
	}{
		{"a success is not repeated", true, nil, "", 1, 0, 0},
		{"an idempotent tool gets a second attempt", true, []error{busy}, "", 2, 75 * time.Millisecond, 125 * time.Millisecond},
		{"and a third", true, []error{busy, busy}, "", 3, 375 * time.Millisecond, 625 * time.Millisecond},
		{"but no fourth", true, []error{busy, busy, busy}, "BUSY", 3, 375 * time.Millisecond, 625 * time.Millisecond},
		{"a failure that is not retryable ends it", true, []error{busy, firm}, "GONE", 2, 75 * time.Millisecond, 125 * time.Millisecond},
		{"an error without a code is not retryable", true, []error{errors.New("x")}, tools.ToolFailed, 1, 0, 0},
		{"a tool that is not idempotent gets one attempt", false, []error{busy}, "BUSY", 1, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoad(t, policy.Ask, nil)
				ran, guarded := 0, 0
				r.Guard("counts", func(context.Context, tools.Call) error { guarded++; return nil })
				r.Add(raw(tools.Tool{Idempotent: c.idempotent}, func(_ context.Context, call *tools.Call) (json.RawMessage, error) {
					call.Attach(tools.Text("attached"))
					ran++
					if ran <= len(c.errs) {
						return nil, c.errs[ran-1]
					}
					return json.RawMessage("1"), nil
				}))
				begin := time.Now()
				result := r.call(t.Context(), "t")
				took := time.Since(begin)
				if codeOf(result) != c.code || ran != c.ran || took < c.least || took > c.most {
					t.Fatalf("error %v after %d attempts and %s", result.Error, ran, took)
				}
				if guarded != 1+c.ran {
					t.Fatalf("guards were asked %d times, want once before and once for each of %d attempts", guarded, c.ran)
				}
				want := 0
				if c.ran > 1 {
					want = c.ran
				}
				if result.Meta.Attempts != want {
					t.Fatalf("attempts %d, want %d", result.Meta.Attempts, want)
				}
				if len(result.Content) != 2 {
					t.Fatalf("content %v, want only the last attempt's attachment", result.Content)
				}
			})
		})
	}
}

func TestACallerWhoCancelsBetweenAttemptsGetsTheToolsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad(t, policy.Ask, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ran := 0
		r.Add(raw(tools.Tool{Idempotent: true}, func(context.Context, *tools.Call) (json.RawMessage, error) {
			ran++
			time.AfterFunc(time.Millisecond, cancel)
			return nil, &tools.Error{Code: "BUSY", Message: "later", Retryable: true}
		}))
		begin := time.Now()
		result := r.call(ctx, "t")
		if codeOf(result) != "BUSY" || ran != 1 || time.Since(begin) != time.Millisecond {
			t.Fatalf("error %v after %d attempts and %s", result.Error, ran, time.Since(begin))
		}
	})
}
