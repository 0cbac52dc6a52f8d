package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
)

// answering are options whose only answerer gives o.
func answering(o policy.Outcome) *tools.Options {
	return &tools.Options{Approvals: policy.NewApprovals(0, policy.Answerer{Name: "stub",
		Answer: func(context.Context, policy.Question) (policy.Outcome, error) { return o, nil }})}
}

func asking(r *road) {
	r.Listen("asks", func(context.Context, tools.Call, func() tools.Verdict) tools.Verdict {
		return tools.Verdict{Reason: "sure?"}
	})
}

func TestEveryCodeOfThePipelineHasACallThatEndsInIt(t *testing.T) {
	with := func(handle tools.Handler) func(*road) {
		return func(r *road) { r.Add(raw(tools.Tool{Timeout: time.Second, MaxValue: 64}, handle)) }
	}
	fine := with(returning("1", nil))
	failing := func(code tools.Code) func(*road) {
		return with(returning("", &tools.Error{Code: code, Message: "from the tool"}))
	}
	for code, c := range map[tools.Code]struct {
		options *tools.Options
		setup   func(*road)
		args    string
		started bool
	}{
		tools.UnknownTool:       {setup: func(*road) {}},
		tools.InvalidArgs:       {setup: fine, args: `[]`},
		tools.ValueTooLarge:     {setup: with(returning(`"`+strings.Repeat("x", 64)+`"`, nil)), started: true},
		tools.InvalidToolOutput: {setup: with(returning("no JSON", nil)), started: true},
		tools.DeniedByListener:  {setup: func(r *road) { fine(r); r.Listen("no", denyAll) }},
		tools.DeniedByGuard: {setup: func(r *road) {
			fine(r)
			r.Guard("no", func(context.Context, tools.Call) error { return errors.New("no") })
		}},
		tools.DeniedByReview:        {setup: func(r *road) { fine(r); r.Listen("review", denyAs(tools.DeniedByReview)) }},
		tools.ApprovalRejected:      {options: answering(policy.Rejected), setup: func(r *road) { fine(r); asking(r) }},
		tools.ApprovalCancelled:     {options: answering(policy.Cancelled), setup: func(r *road) { fine(r); asking(r) }},
		tools.ApprovalUnavailable:   {setup: func(r *road) { fine(r); asking(r) }},
		tools.AbortedBeforeDispatch: {setup: func(r *road) { fine(r); r.Listen("cancels", r.cancelling()) }},
		tools.Aborted: {setup: func(r *road) {
			with(func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
				r.cancel()
				return untilDone(ctx, call)
			})(r)
		}, started: true},
		tools.ToolTimeout:        {setup: with(untilDone), started: true},
		tools.ToolFailed:         {setup: with(returning("", errors.New("boom"))), started: true},
		tools.SandboxUnavailable: {setup: failing(tools.SandboxUnavailable), started: true},
		tools.BlockedByPost: {setup: func(r *road) {
			fine(r)
			r.After("no", func(context.Context, tools.Call, tools.Result) (tools.Amendment, error) {
				return tools.Amendment{Block: "no"}, nil
			})
		}, started: true},
		tools.LogFailed: {setup: func(r *road) { fine(r); r.session.Log().Close() }},
	} {
		t.Run(string(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoad(t, policy.Ask, c.options)
				var ctx context.Context
				ctx, r.cancel = context.WithCancel(t.Context())
				defer r.cancel()
				c.setup(r)
				result := r.Call(ctx, tools.Request{Tool: "t", Args: json.RawMessage(c.args), Session: r.session})
				if codeOf(result) != code || result.Meta.Started != c.started || result.Value != nil {
					t.Fatalf("error %v, started %v, value %s", result.Error, result.Meta.Started, result.Value)
				}
			})
		})
	}
}

func denyAs(code tools.Code) tools.Listener {
	return func(context.Context, tools.Call, func() tools.Verdict) tools.Verdict {
		return tools.Verdict{Judgement: tools.Deny, Code: code, Reason: "no"}
	}
}

func (r *road) cancelling() tools.Listener {
	return func(context.Context, tools.Call, func() tools.Verdict) tools.Verdict {
		r.cancel()
		return tools.Verdict{Judgement: tools.Cancel}
	}
}

func TestACancelWithALiveContextIsADenial(t *testing.T) {
	r := newRoad(t, policy.Ask, nil)
	r.Listen("cancels", func(context.Context, tools.Call, func() tools.Verdict) tools.Verdict {
		return tools.Verdict{Judgement: tools.Cancel, Reason: "gone"}
	})
	if result := r.delete(t.Context()); codeOf(result) != tools.DeniedByListener || len(r.got) != 0 {
		t.Fatalf("error %v, body got %v", result.Error, r.got)
	}
}

func TestAGuardThatGivesUpWithTheCallerDeniesNothing(t *testing.T) {
	r := newRoad(t, policy.Ask, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r.Guard("asks a service", func(ctx context.Context, _ tools.Call) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if result := r.delete(ctx); codeOf(result) != tools.AbortedBeforeDispatch || result.Meta.DeniedBy != nil {
		t.Fatalf("error %v by %v", result.Error, result.Meta.DeniedBy)
	}
}

func TestWhatAToolSaysAboutItsFailureIsKept(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want tools.Error
	}{
		{"code, details and retryable", &tools.Error{Code: "BUSY", Message: "m", Details: json.RawMessage(`{"in":3}`), Retryable: true},
			tools.Error{Code: "BUSY", Message: "m", Details: json.RawMessage(`{"in":3}`), Retryable: true}},
		{"inside of another error", errors.Join(errors.New("while closing"), &tools.Error{Code: "BUSY", Message: "m"}), tools.Error{Code: "BUSY", Message: "m"}},
		{"details that are no JSON are left out", &tools.Error{Code: "BUSY", Message: "m", Details: json.RawMessage(`{`)}, tools.Error{Code: "BUSY", Message: "m"}},
		{"no code", &tools.Error{Message: "m"}, tools.Error{Code: tools.ToolFailed, Message: "m"}},
		{"a nil *Error", (*tools.Error)(nil), tools.Error{Code: tools.ToolFailed, Message: "<nil>"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoad(t, policy.Ask, nil)
			r.Add(raw(tools.Tool{}, returning("", c.err)))
			result := r.call(t.Context(), "t")
			got := result.Error
			if got == nil || got.Code != c.want.Code || got.Message != c.want.Message || got.Retryable != c.want.Retryable || !bytes.Equal(got.Details, c.want.Details) {
				t.Fatalf("error %+v, want %+v", got, c.want)
			}
			if got == c.err {
				t.Fatal("the tool still holds the result's error")
			}
		})
	}
}

func TestAPanicOfABodyOrARendererIsAFailureWithItsText(t *testing.T) {
	for _, c := range []struct {
		name string
		tool tools.Tool
		text string
	}{
		{"body", raw(tools.Tool{}, func(context.Context, *tools.Call) (json.RawMessage, error) { panic("ouch") }), "ouch"},
		{"renderer", raw(tools.Tool{Render: func(_, _ json.RawMessage) []tools.Content { panic("ouch") }}, returning("1", nil)), "could not be rendered: it panicked: ouch"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoad(t, policy.Ask, nil)
			r.Add(c.tool)
			result := r.call(t.Context(), "t")
			if codeOf(result) != tools.ToolFailed || !strings.Contains(result.Error.Message, c.text) || result.Value != nil {
				t.Fatalf("error %v, value %s", result.Error, result.Value)
			}
		})
	}
}

func TestWhatAPostExecuteStepMayDoToAFailedCall(t *testing.T) {
	shown := []tools.Content{tools.Text("all is well")}
	for _, c := range []struct {
		name    string
		denied  bool // else the body fails
		a       tools.Amendment
		err     error
		content string // the first block begins so
		context string
		logged  string
	}{
		{"add context to a refusal", true, tools.Amendment{Context: shown}, nil, "DENIED_BY_LISTENER", "all is well", ""},
		{"add feedback to a refusal", true, tools.Amendment{Block: "read the rules"}, nil, "DENIED_BY_LISTENER", "blocked by step: read the rules", ""},
		{"not replace what a refusal shows", true, tools.Amendment{Content: shown}, nil, "DENIED_BY_LISTENER", "", "content of a refused call"},
		{"not give a refusal a value", true, tools.Amendment{Value: json.RawMessage("1")}, nil, "DENIED_BY_LISTENER", "", "a value to a failed call"},
		{"replace what a failure shows", false, tools.Amendment{Content: shown}, nil, "all is well", "", ""},
		{"not give a failure a value", false, tools.Amendment{Value: json.RawMessage("1")}, nil, "TOOL_FAILED", "", "a value to a failed call"},
		{"fail without an effect, but not silently", false, tools.Amendment{}, errors.New("broken step"), "TOOL_FAILED", "", "broken step"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var report bytes.Buffer
			r := newRoad(t, policy.Ask, &tools.Options{Logger: slog.New(slog.NewTextHandler(&report, nil))})
			r.Add(raw(tools.Tool{}, returning("", errors.New("boom"))))
			if c.denied {
				r.Listen("no", denyAll)
			}
			r.After("step", func(context.Context, tools.Call, tools.Result) (tools.Amendment, error) { return c.a, c.err })
			result := r.call(t.Context(), "t")
			if result.Error == nil || result.Value != nil || !strings.HasPrefix(result.Content[0].Text, c.content) {
				t.Fatalf("error %v, value %s, content %q", result.Error, result.Value, result.Content)
			}
			if (result.Meta.DeniedBy != nil) != c.denied || c.denied && result.Meta.DeniedBy.Stage != tools.StageListener {
				t.Fatalf("denied by %+v", result.Meta.DeniedBy)
			}
			var context string
			for _, block := range result.Meta.Context {
				context += block.Text
			}
			if context != c.context || !strings.Contains(report.String(), c.logged) || (c.logged == "") != (report.Len() == 0) {
				t.Fatalf("context %q, reported %q", context, report.String())
			}
		})
	}
}

func TestAttachedBlocksFollowAValueThatAStepReplaced(t *testing.T) {
	r := newRoad(t, policy.Ask, nil)
	r.Add(raw(tools.Tool{}, func(_ context.Context, call *tools.Call) (json.RawMessage, error) {
		call.Attach(tools.Image([]byte("png"), "image/png"))
		return json.RawMessage("1"), nil
	}))
	r.After("step", func(context.Context, tools.Call, tools.Result) (tools.Amendment, error) {
		return tools.Amendment{Value: json.RawMessage("2")}, nil
	})
	result := r.call(t.Context(), "t")
	if string(result.Value) != "2" || len(result.Content) != 2 || result.Content[0].Text != "2" || string(result.Content[1].Data) != "png" {
		t.Fatalf("value %s, content %v", result.Value, result.Content)
	}
}

func TestAPanickingObserverIsReported(t *testing.T) {
	var report bytes.Buffer
	r := newRoad(t, policy.Ask, &tools.Options{Logger: slog.New(slog.NewTextHandler(&report, nil))})
	r.Observe("watcher", func(context.Context, tools.Call, tools.Result) { panic("ouch") })
	result := r.delete(t.Context())
	if result.Error != nil || !strings.Contains(report.String(), "watcher") || !strings.Contains(report.String(), "ouch") {
		t.Fatalf("error %v, reported %q", result.Error, report.String())
	}
}
