package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// raw is a tool without arguments whose body is handle.
func raw(t tools.Tool, handle tools.Handler) tools.Tool {
	t.Description, t.Input, t.Handle = "a tool for tests", json.RawMessage(`{"type":"object"}`), handle
	if t.Name == "" {
		t.Name = "t"
	}
	return t
}

func returning(value string, err error) tools.Handler {
	return func(context.Context, *tools.Call) (json.RawMessage, error) { return json.RawMessage(value), err }
}

func (r *road) call(ctx context.Context, tool string) tools.Result {
	return r.Call(ctx, tools.Request{Tool: tool, Session: r.session})
}

func codeOf(r tools.Result) tools.Code {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

func TestAWrapperReturnsWhatTheBodyDid(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		name    string
		body    tools.Handler
		wrapper tools.Wrapper
		code    tools.Code
		text    string
	}{
		{"passing on is fine", returning("1", nil), func(next tools.Body) tools.Body { return next }, "", "1"},
		{"trying again is fine", returning("1", nil), func(next tools.Body) tools.Body {
			return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
				next(ctx, call)
				return next(ctx, call)
			}
		}, "", "1"},
		{"an equal value is fine", returning("1", nil), func(next tools.Body) tools.Body {
			return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
				_, err := next(ctx, call)
				return json.RawMessage("1"), err
			}
		}, "", "1"},
		{"failing a success is a failure", returning("1", nil), func(next tools.Body) tools.Body {
			return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
				next(ctx, call)
				return nil, boom
			}
		}, tools.ToolFailed, "boom"},
		{"a code of its own is kept", returning("1", nil), func(next tools.Body) tools.Body {
			return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
				next(ctx, call)
				return nil, &tools.Error{Code: "QUOTA", Message: "used up"}
			}
		}, "QUOTA", "used up"},
		{"a success made of a failure is refused", returning("", boom), func(next tools.Body) tools.Body {
			return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
				next(ctx, call)
				return json.RawMessage("1"), nil
			}
		}, tools.ToolFailed, "the wrapper w made a success of a failure: boom"},
		{"an invented value is refused", returning("1", nil), func(next tools.Body) tools.Body {
			return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
				_, err := next(ctx, call)
				return json.RawMessage("2"), err
			}
		}, tools.ToolFailed, "the wrapper w returned another value than the body"},
		{"a value changed in place is refused", returning("1", nil), func(next tools.Body) tools.Body {
			return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
				value, err := next(ctx, call)
				value[0] = '2'
				return value, err
			}
		}, tools.ToolFailed, "another value"},
		{"an earlier success after a failed attempt is refused", func() tools.Handler {
			n := 0
			return func(context.Context, *tools.Call) (json.RawMessage, error) {
				if n++; n%2 == 0 {
					return nil, boom
				}
				return json.RawMessage("1"), nil
			}
		}(), func(next tools.Body) tools.Body {
			return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
				value, _ := next(ctx, call)
				next(ctx, call)
				return value, nil
			}
		}, tools.ToolFailed, "made a success of a failure"},
		{"an answer without the body is refused", returning("1", nil), func(tools.Body) tools.Body {
			return func(context.Context, *tools.Call) (json.RawMessage, error) { return json.RawMessage("1"), nil }
		}, tools.ToolFailed, "the wrapper w did not run the body"},
		{"an error without the body is told", returning("1", nil), func(tools.Body) tools.Body {
			return func(context.Context, *tools.Call) (json.RawMessage, error) { return nil, boom }
		}, tools.ToolFailed, "did not run the body: boom"},
		{"a panic fails the call", returning("1", nil), func(next tools.Body) tools.Body {
			return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
				next(ctx, call)
				panic("ouch")
			}
		}, tools.ToolFailed, "ouch"},
		{"no body at all fails the call", returning("1", nil), func(tools.Body) tools.Body { return nil }, tools.ToolFailed, "the wrapper w failed"},
		{"no context stands for the caller's", returning("1", nil), func(next tools.Body) tools.Body {
			return func(context.Context, *tools.Call) (json.RawMessage, error) { return next(nil, nil) }
		}, "", "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, place := range []string{"alone", "inside of another", "around another"} {
				r := newRoad(t, policy.Ask, nil)
				r.Add(raw(tools.Tool{}, c.body))
				plain := func(next tools.Body) tools.Body { return next }
				if place == "inside of another" {
					r.Wrap("plain", plain)
				}
				r.Wrap("w", c.wrapper)
				if place == "around another" {
					r.Wrap("plain", plain)
				}
				result := r.call(t.Context(), "t")
				if codeOf(result) != c.code || !strings.Contains(result.Content[0].Text, c.text) {
					t.Errorf("%s: code %q, content %q; want %q and %q", place, codeOf(result), result.Content[0].Text, c.code, c.text)
				}
			}
		})
	}
}

func TestAnOuterWrapperCannotHideThatAnInnerOneFailed(t *testing.T) {
	r := newRoad(t, policy.Ask, nil)
	r.Add(raw(tools.Tool{}, returning("1", nil)))
	r.Wrap("outer", func(next tools.Body) tools.Body {
		return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
			next(ctx, call)
			return json.RawMessage("1"), nil
		}
	})
	r.Wrap("inner", func(next tools.Body) tools.Body {
		return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
			next(ctx, call)
			return nil, errors.New("measured too much")
		}
	})
	result := r.call(t.Context(), "t")
	if codeOf(result) != tools.ToolFailed || !strings.Contains(result.Error.Message, "the wrapper outer made a success of a failure: measured too much") {
		t.Fatalf("error %v", result.Error)
	}
}

func TestAGuardsVetoInAnAttemptSurvivesTheWrappers(t *testing.T) {
	again := func(next tools.Body) tools.Body {
		return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
			next(ctx, call)
			next(ctx, call)
			return json.RawMessage("1"), nil
		}
	}
	r := newRoad(t, policy.Ask, nil)
	ran, asked := 0, 0
	r.Add(raw(tools.Tool{}, func(context.Context, *tools.Call) (json.RawMessage, error) { ran++; return json.RawMessage("1"), nil }))
	r.Guard("once", func(context.Context, tools.Call) error {
		if asked++; asked == 2 {
			return errors.New("not now")
		}
		return nil
	})
	r.Wrap("again", again)
	result := r.call(t.Context(), "t")
	by := result.Meta.DeniedBy
	if ran != 0 || codeOf(result) != tools.DeniedByGuard || by == nil || by.Stage != tools.StageGuard || by.Rule != "once" {
		t.Fatalf("the body ran %d times, error %v by %+v; want the guard's veto to be final", ran, result.Error, by)
	}
}

func TestABodyEndsWithTheCallersContext(t *testing.T) {
	type key struct{}
	for _, c := range []struct {
		name string
		pass func(context.Context) context.Context
	}{
		{"a context of its own", func(context.Context) context.Context { return context.Background() }},
		{"one without cancellation", context.WithoutCancel},
		{"one with a value", func(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, 1) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoad(t, policy.Ask, nil)
			ctx, cancel := context.WithCancelCause(t.Context())
			stopped := false
			r.Add(raw(tools.Tool{}, func(ctx context.Context, _ *tools.Call) (json.RawMessage, error) {
				cancel(errors.New("the user left"))
				<-ctx.Done()
				stopped = true
				return nil, context.Cause(ctx)
			}))
			r.Wrap("w", func(next tools.Body) tools.Body {
				return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) { return next(c.pass(ctx), call) }
			})
			result := r.call(ctx, "t")
			if !stopped || codeOf(result) != tools.Aborted || !strings.Contains(result.Error.Message, "the user left") {
				t.Fatalf("stopped %v, error %v", stopped, result.Error)
			}
		})
	}
}

func TestAWrapperThatLeavesARunningBodyIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer error
		text   string
	}{
		{"with a success", nil, "the wrapper w returned while the body ran"},
		{"with an error", errors.New("too slow"), "too slow"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoad(t, policy.Ask, nil)
			began, stopped, refused := make(chan bool), false, make(chan error, 1)
			r.Add(raw(tools.Tool{}, func(ctx context.Context, _ *tools.Call) (json.RawMessage, error) {
				close(began)
				<-ctx.Done()
				stopped = true
				return json.RawMessage("1"), nil
			}))
			r.Wrap("w", func(next tools.Body) tools.Body {
				return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
					go func() {
						next(ctx, call)
						_, err := next(ctx, call)
						refused <- err
					}()
					<-began
					return json.RawMessage("1"), c.answer
				}
			})
			result := r.call(t.Context(), "t")
			if !stopped {
				t.Fatal("the call returned while its body ran")
			}
			if codeOf(result) != tools.ToolFailed || !strings.Contains(result.Error.Message, c.text) {
				t.Fatalf("error %v, want %q", result.Error, c.text)
			}
			if err := <-refused; err == nil {
				t.Fatal("the wrapper ran the body again after it had returned")
			}
		})
	}
}

func TestBodiesOfOneCallDoNotOverlap(t *testing.T) {
	r := newRoad(t, policy.Ask, nil)
	running, most, n := 0, 0, 0 // the race detector watches these
	r.Add(raw(tools.Tool{}, func(context.Context, *tools.Call) (json.RawMessage, error) {
		running++
		most, n = max(most, running), n+1
		running--
		return json.RawMessage("1"), nil
	}))
	r.Wrap("w", func(next tools.Body) tools.Body {
		return func(ctx context.Context, call *tools.Call) (value json.RawMessage, err error) {
			done := make(chan error)
			for range 4 {
				go func() {
					_, err := next(ctx, call)
					done <- err
				}()
			}
			for range 4 {
				err = errors.Join(err, <-done)
			}
			return json.RawMessage("1"), err
		}
	})
	if result := r.call(t.Context(), "t"); result.Error != nil || most != 1 || n != 4 || result.Meta.Attempts != 4 {
		t.Fatalf("error %v, %d bodies at one time, %d in all, attempts %d", result.Error, most, n, result.Meta.Attempts)
	}
}

func TestTheStartOfABodyThatMayChangeSomethingIsLoggedOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		effect tools.Effect
		want   int
	}{
		{"external", tools.External, 1},
		{"local", tools.Local, 1},
		{"none", tools.NoEffect, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoad(t, policy.Ask, nil)
			var before int
			r.Add(raw(tools.Tool{Effect: c.effect}, func(context.Context, *tools.Call) (json.RawMessage, error) {
				before = len(r.events(t, session.ToolStarted))
				return json.RawMessage("1"), nil
			}))
			r.Wrap("twice", func(next tools.Body) tools.Body {
				return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
					next(ctx, call)
					return next(ctx, call)
				}
			})
			r.call(t.Context(), "t")
			events := r.events(t, session.ToolStarted)
			if before != c.want || len(events) != c.want {
				t.Fatalf("%d tool/started in the body, %d at the end; want %d", before, len(events), c.want)
			}
			if c.want == 1 && events[0]["call_id"] != "c1" {
				t.Fatalf("it is %v", events[0])
			}
		})
	}
}

func TestABodyWhoseStartCannotBeLoggedDoesNotRun(t *testing.T) {
	r := newRoad(t, policy.Ask, nil)
	r.Guard("fills the disk", func(context.Context, tools.Call) error { return r.session.Log().Close() })
	result := r.delete(t.Context())
	if codeOf(result) != tools.LogFailed || result.Meta.Started || len(r.got) != 0 {
		t.Fatalf("error %v, started %v, body got %v", result.Error, result.Meta.Started, r.got)
	}
}

func TestAListenerThatAnsweredCannotAskOn(t *testing.T) {
	r := newRoad(t, policy.Ask, nil)
	late := make(chan func() tools.Verdict, 1)
	inner := 0
	r.Listen("outer", func(_ context.Context, _ tools.Call, next func() tools.Verdict) tools.Verdict {
		late <- next
		return tools.Verdict{Judgement: tools.Allow}
	})
	r.Listen("inner", func(context.Context, tools.Call, func() tools.Verdict) tools.Verdict {
		inner++
		return tools.Verdict{Judgement: tools.Allow}
	})
	r.delete(t.Context())
	if v := (<-late)(); v.Judgement != tools.Deny || inner != 0 {
		t.Fatalf("verdict %+v, the inner listener was asked %d times", v, inner)
	}
}
