package tools_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// nested adds a tool whose body is f.
func (r *road) nested(name string, f func(ctx context.Context, call *tools.Call)) {
	r.Add(tools.Tool{
		Name: name, Description: "makes calls", Input: json.RawMessage(`{"type":"object"}`),
		Handle: func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
			f(ctx, call)
			return json.RawMessage(`{}`), nil
		},
	})
}

var someDeletion = json.RawMessage(`{"path":"x"}`)

func TestACallReachesNoMoreThanItsParent(t *testing.T) {
	wide, stranger := newRoad(t, policy.Never, nil), newRoad(t, policy.Never, nil)
	veto := func(context.Context, tools.Call) error { return context.Canceled }
	for _, c := range []struct {
		name    string
		through func(parents *tools.Registry) *tools.Registry
		want    tools.Code
	}{
		{"the parent's own registry", func(r *tools.Registry) *tools.Registry { return r }, tools.UnknownTool},
		{"the registry that the parent's is a view of", func(*tools.Registry) *tools.Registry { return wide.Registry }, tools.UnknownTool},
		{"another view of that", func(*tools.Registry) *tools.Registry { return wide.View() }, tools.UnknownTool},
		{"a registry that has nothing to do with it", func(*tools.Registry) *tools.Registry { return stranger.Registry }, tools.UnknownTool},
		{"a view of the parent's that denies", func(r *tools.Registry) *tools.Registry {
			v := r.View(tools.With(tools.New(tools.Tool{Name: "more", Description: "more"},
				func(context.Context, *tools.Call, struct{}) (int, error) { return 1, nil })))
			v.Guard("veto", veto)
			return v
		}, tools.DeniedByGuard},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got tools.Result
			wide := newRoad(t, policy.Never, nil)
			wide.nested("outer", func(ctx context.Context, call *tools.Call) {
				tool := "delete_path"
				if c.want == tools.DeniedByGuard {
					tool = "more"
				}
				got = c.through(call.Registry()).Call(ctx, tools.Request{Tool: tool, Args: nil, Parent: call})
			})
			wide.View(tools.Without("delete_path")).Call(t.Context(), tools.Request{Tool: "outer", Session: wide.session})
			if got.Error == nil || got.Error.Code != c.want {
				t.Errorf("got %v, want %s", got.Error, c.want)
			}
		})
	}
}

func TestCallsOfABodyBelongToIt(t *testing.T) {
	r, other := newRoad(t, policy.Never, nil), newRoad(t, policy.Never, nil)
	by := policy.Caller{Kind: policy.Program, Line: 3}
	var callers []policy.Caller
	r.Guard("look", func(_ context.Context, call tools.Call) error {
		callers = append(callers, call.Caller)
		return nil
	})
	r.nested("inner", func(ctx context.Context, call *tools.Call) {
		r.Call(ctx, tools.Request{Tool: "delete_path", Args: someDeletion, Parent: call})
	})
	r.nested("outer", func(ctx context.Context, call *tools.Call) {
		r.Call(ctx, tools.Request{Tool: "inner", Parent: call, Session: other.session})
		r.Call(ctx, tools.Request{Tool: "delete_path", Args: someDeletion, Parent: call})
	})
	r.Call(t.Context(), tools.Request{Tool: "outer", Session: r.session, Caller: by})

	var ids []any
	for _, e := range r.events(t, session.ToolCall) {
		ids = append(ids, e["call_id"])
	}
	if want := []any{"c1", "c1:1", "c1:1:1", "c1:2"}; !slices.Equal(ids, want) {
		t.Errorf("the ids are %v, want %v", ids, want)
	}
	if n := len(other.events(t, session.ToolCall)); n != 0 {
		t.Errorf("the log of another session has %d of the calls", n)
	}
	for _, c := range callers {
		if c != by {
			t.Errorf("a call was made by %+v, want %+v", c, by)
		}
	}
}

func TestAnEndedCallMakesNoMore(t *testing.T) {
	r := newRoad(t, policy.Never, nil)
	var ended *tools.Call
	r.nested("outer", func(_ context.Context, call *tools.Call) { ended = call })
	r.Call(t.Context(), tools.Request{Tool: "outer", Session: r.session})
	got := r.Call(t.Context(), tools.Request{Tool: "delete_path", Args: someDeletion, Parent: ended})
	if got.Error == nil || got.Error.Code != tools.AbortedBeforeDispatch || len(r.got) > 0 {
		t.Errorf("got %v and deletions of %q", got.Error, r.got)
	}
	if n := len(r.events(t, session.ToolResult)); n != 2 {
		t.Errorf("the log has %d results, want 2", n)
	}
}

func TestACallEndsAfterThoseThatItMakes(t *testing.T) {
	r := newRoad(t, policy.Never, nil)
	started := make(chan struct{})
	r.nested("slow", func(ctx context.Context, _ *tools.Call) {
		close(started)
		<-ctx.Done()
	})
	r.nested("outer", func(ctx context.Context, call *tools.Call) {
		go r.Call(ctx, tools.Request{Tool: "slow", Parent: call})
		<-started
	})
	r.Call(t.Context(), tools.Request{Tool: "outer", Session: r.session})
	var ids []any
	for _, e := range r.events(t, session.ToolResult) {
		ids = append(ids, e["call_id"])
	}
	if want := []any{"c1:1", "c1"}; !slices.Equal(ids, want) {
		t.Errorf("the results are those of %v, want %v", ids, want)
	}
}

func TestIDsAreNotGivenTwice(t *testing.T) {
	r := newRoad(t, policy.Never, nil)
	r.Call(t.Context(), tools.Request{ID: "c1", Tool: "delete_path", Args: someDeletion, Session: r.session})
	if got := r.delete(t.Context()).Meta.CallID; got != "c2" {
		t.Errorf("after a call that was named c1 the next is %s, want c2", got)
	}
}

func TestWhatABodyRecordsLateIsNotKept(t *testing.T) {
	r := newRoad(t, policy.Never, nil)
	var last *tools.Call
	n := 0
	r.Wrap("again", func(next tools.Body) tools.Body {
		return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
			next(ctx, call)
			call.Attach(tools.Text("by the wrapper"))
			return next(ctx, call)
		}
	})
	r.Add(tools.Tool{
		Name: "fails", Description: "fails", Input: json.RawMessage(`{"type":"object"}`),
		Handle: func(_ context.Context, call *tools.Call) (json.RawMessage, error) {
			if n++; last != nil {
				last.Attach(tools.Text("too late"))
				last.Confine(policy.Confinement{Backend: "too late"})
			}
			last = call
			call.Attach(tools.Text([]string{"first", "second"}[n-1]))
			return nil, &tools.Error{Code: "NO", Message: "no"}
		},
	})
	got := r.Call(t.Context(), tools.Request{Tool: "fails", Session: r.session})
	var texts []string
	for _, block := range got.Content {
		texts = append(texts, block.Text)
	}
	if want := []string{"NO: no", "second", "by the wrapper"}; !slices.Equal(texts, want) || got.Meta.Confinement != nil {
		t.Errorf("the content is %q confined by %v, want %q and nothing", texts, got.Meta.Confinement, want)
	}
}
