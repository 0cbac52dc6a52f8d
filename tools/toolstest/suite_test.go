package toolstest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsh-run/dsh/tools"
)

// passOn is the listener that changes nothing.
func passOn(_ context.Context, _ tools.Call, next func() tools.Verdict) tools.Verdict { return next() }

// bare is the wrapper that changes nothing.
func bare(next tools.Body) tools.Body { return next }

func TestWellBehavedStagesPass(t *testing.T) {
	t.Run("a listener that asks on", func(t *testing.T) { Listener(t, passOn) })
	t.Run("a listener that asks a person", func(t *testing.T) {
		Listener(t, func(context.Context, tools.Call, func() tools.Verdict) tools.Verdict {
			return tools.Verdict{Reason: "sure?"}
		})
	})
	t.Run("a listener that waits for the end of its context", func(t *testing.T) {
		Listener(t, func(ctx context.Context, _ tools.Call, next func() tools.Verdict) tools.Verdict {
			v := next()
			if ctx.Err() != nil {
				return tools.Verdict{Judgement: tools.Cancel}
			}
			return v
		})
	})
	t.Run("a guard that vetoes some", func(t *testing.T) {
		Guard(t, func(_ context.Context, call tools.Call) error {
			if strings.Contains(string(call.Args), "a.txt") {
				return errors.New("not that file")
			}
			return nil
		})
	})
	t.Run("a wrapper that does nothing", func(t *testing.T) { Wrapper(t, bare) })
	t.Run("a wrapper that limits time", func(t *testing.T) {
		Wrapper(t, func(next tools.Body) tools.Body {
			return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
				ctx, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				return next(ctx, call)
			}
		})
	})
	t.Run("a wrapper that tries three times", func(t *testing.T) {
		Wrapper(t, func(next tools.Body) tools.Body {
			return func(ctx context.Context, call *tools.Call) (value json.RawMessage, err error) {
				for range 3 {
					if value, err = next(ctx, call); err == nil || ctx.Err() != nil {
						break
					}
				}
				return value, err
			}
		})
	})
	t.Run("a step that replaces some content", func(t *testing.T) {
		Post(t, func(_ context.Context, _ tools.Call, r tools.Result) (tools.Amendment, error) {
			if r.Error != nil {
				return tools.Amendment{Context: []tools.Content{tools.Text("it failed")}}, nil
			}
			return tools.Amendment{Content: []tools.Content{tools.Text("it worked")}}, nil
		})
	})
	t.Run("an observer that keeps its copy", func(t *testing.T) {
		kept := make(chan tools.Result, 1)
		Observer(t, func(_ context.Context, _ tools.Call, r tools.Result) {
			select {
			case kept <- r:
			default:
			}
		})
	})
}

// wrapping is a wrapper from one function.
func wrapping(f func(ctx context.Context, call *tools.Call, next tools.Body) (json.RawMessage, error)) subject {
	return wrapper(func(next tools.Body) tools.Body {
		return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) { return f(ctx, call, next) }
	})
}

type (
	verdict   = tools.Verdict
	amendment = tools.Amendment
)

func TestMisbehaviourIsFound(t *testing.T) {
	// What blocks for ever is only waited for as long as it takes to see it.
	normally := hangTime.Swap(int64(time.Second))
	block := make(chan struct{})
	t.Cleanup(func() {
		close(block)
		hangTime.Store(normally)
	})
	for _, c := range []struct {
		name  string
		stage subject
		found claim
	}{
		{"a listener that blocks", listener(func(ctx context.Context, _ tools.Call, next func() verdict) verdict { <-ctx.Done(); return next() }), returns},
		{"a listener that does not notice that its caller has gone", listener(func(ctx context.Context, _ tools.Call, next func() verdict) verdict {
			if ctx.Err() != nil {
				<-block
			}
			return next()
		}), ends},
		{"a listener that hangs when its caller goes while the next is asked", listener(func(ctx context.Context, _ tools.Call, next func() verdict) verdict {
			v := next()
			if ctx.Err() != nil {
				<-block
			}
			return v
		}), endsInside},
		{"a listener that panics on what it does not know", listener(func(_ context.Context, call tools.Call, next func() verdict) verdict {
			var args struct{ Path string }
			if err := json.Unmarshal(call.Args, &args); err != nil {
				panic(err)
			}
			return next()
		}), noPanic},
		{"a listener that needs a session", listener(func(_ context.Context, call tools.Call, next func() verdict) verdict {
			call.Session.Log()
			return next()
		}), noPanic},
		{"a listener that writes into the arguments", listener(func(_ context.Context, call tools.Call, next func() verdict) verdict {
			copy(call.Args, `{"path":"b.txt"`)
			return next()
		}), leaves},
		{"a listener that asks on twice", listener(func(_ context.Context, _ tools.Call, next func() verdict) verdict { next(); return next() }), nextOnce},
		{"a listener that asks on after its answer", listener(func(_ context.Context, _ tools.Call, next func() verdict) verdict {
			time.AfterFunc(time.Millisecond, func() { next() })
			return verdict{Judgement: tools.Allow}
		}), noLateNext},
		{"a listener that makes up a judgement", listener(func(context.Context, tools.Call, func() verdict) verdict {
			return verdict{Judgement: 42}
		}), inWords},
		{"a listener that asks by accident", listener(func(context.Context, tools.Call, func() verdict) verdict { return verdict{} }), saysWhy},
		{"a listener that denies without a word", listener(func(context.Context, tools.Call, func() verdict) verdict {
			return verdict{Judgement: tools.Deny}
		}), saysWhy},
		{"a listener that cancels as it likes", listener(func(context.Context, tools.Call, func() verdict) verdict {
			return verdict{Judgement: tools.Cancel}
		}), liveCancel},
		{"a listener that locks itself out", listener(lockedOut(block)), concurrent},

		{"a guard that blocks", guard(func(ctx context.Context, _ tools.Call) error { <-ctx.Done(); return nil }), returns},
		{"a guard that panics", guard(func(context.Context, tools.Call) error { panic("oh") }), noPanic},
		{"a guard that does not notice that its caller has gone", guard(func(ctx context.Context, _ tools.Call) error {
			if ctx.Err() != nil {
				<-block
			}
			return nil
		}), ends},
		{"a guard that writes into the arguments", guard(func(_ context.Context, call tools.Call) error {
			clear(call.Args)
			return nil
		}), leaves},

		{"a wrapper that makes up a value", wrapping(func(context.Context, *tools.Call, tools.Body) (json.RawMessage, error) {
			return json.RawMessage(`{}`), nil
		}), runsBody},
		{"a wrapper that runs the body to warm up", wrapping(func(ctx context.Context, call *tools.Call, next tools.Body) (json.RawMessage, error) {
			next(ctx, call)
			return next(ctx, call)
		}), oneSuccess},
		{"a wrapper that tries for ever", wrapping(func(ctx context.Context, call *tools.Call, next tools.Body) (json.RawMessage, error) {
			for {
				if value, err := next(ctx, call); err == nil {
					return value, nil
				}
			}
		}), givesUp},
		{"a wrapper that runs two bodies at once", wrapping(func(ctx context.Context, call *tools.Call, next tools.Body) (json.RawMessage, error) {
			return raced(ctx, call, next)
		}), inTurn},
		{"a wrapper that runs the body after its answer", wrapping(func(ctx context.Context, call *tools.Call, next tools.Body) (json.RawMessage, error) {
			time.AfterFunc(time.Millisecond, func() { next(ctx, call) })
			return nil, errors.New("later")
		}), noLateBody},
		{"a wrapper that does not wait", wrapping(func(ctx context.Context, call *tools.Call, next tools.Body) (json.RawMessage, error) {
			done := make(chan struct{})
			go func() { next(ctx, call); close(done) }()
			select {
			case <-done:
				return nil, errors.New("done")
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}), waits},
		{"a wrapper that swallows failures", wrapping(func(ctx context.Context, call *tools.Call, next tools.Body) (json.RawMessage, error) {
			value, err := next(ctx, call)
			if err != nil {
				return json.RawMessage(`{}`), nil
			}
			return value, nil
		}), keepsFailure},
		{"a wrapper that returns another value", wrapping(func(ctx context.Context, call *tools.Call, next tools.Body) (json.RawMessage, error) {
			_, err := next(ctx, call)
			return json.RawMessage(`{"mine":true}`), err
		}), keepsValue},
		{"a wrapper that detaches the body", wrapping(func(ctx context.Context, call *tools.Call, next tools.Body) (json.RawMessage, error) {
			return next(context.WithoutCancel(ctx), call)
		}), keepsContext},
		{"a wrapper that starts a context of its own", wrapping(func(_ context.Context, call *tools.Call, next tools.Body) (json.RawMessage, error) {
			return next(context.Background(), call)
		}), keepsValues},
		{"a wrapper that hangs when its caller goes while the body runs", wrapping(func(ctx context.Context, call *tools.Call, next tools.Body) (json.RawMessage, error) {
			value, err := next(ctx, call)
			if ctx.Err() != nil {
				<-block
			}
			return value, err
		}), endsInside},
		{"a wrapper that writes into the arguments", wrapping(func(ctx context.Context, call *tools.Call, next tools.Body) (json.RawMessage, error) {
			call.Args = json.RawMessage(`{"path":"b.txt"}`)
			return next(ctx, call)
		}), leaves},
		{"a wrapper that returns no body", wrapper(func(tools.Body) tools.Body { return nil }), noPanic},

		{"a step that replaces content and value", post(func(_ context.Context, _ tools.Call, r tools.Result) (amendment, error) {
			return amendment{Value: json.RawMessage(`{}`), Content: []tools.Content{}}, nil
		}), oneChange},
		{"a step that rescues failures", post(func(context.Context, tools.Call, tools.Result) (amendment, error) {
			return amendment{Value: json.RawMessage(`{}`)}, nil
		}), noRescue},
		{"a step whose value is no JSON", post(func(context.Context, tools.Call, tools.Result) (amendment, error) {
			return amendment{Value: json.RawMessage(`{`)}, nil
		}), isJSON},
		{"a step that fails where it has nothing to do", post(func(context.Context, tools.Call, tools.Result) (amendment, error) {
			return amendment{}, errors.New("nothing to do")
		}), noErrorOnOK},
		{"a step that relies on an error", post(func(_ context.Context, _ tools.Call, r tools.Result) (amendment, error) {
			_ = r.Error.Code
			return amendment{}, nil
		}), noPanic},
		{"a step that writes into the content", post(func(_ context.Context, _ tools.Call, r tools.Result) (amendment, error) {
			for i := range r.Content {
				r.Content[i].Text = "mine"
			}
			return amendment{}, nil
		}), leaves},
		{"a step that blocks", post(func(ctx context.Context, _ tools.Call, _ tools.Result) (amendment, error) {
			<-ctx.Done()
			return amendment{}, nil
		}), returns},

		{"an observer that blocks", observer(func(ctx context.Context, _ tools.Call, _ tools.Result) { <-ctx.Done() }), returns},
		{"an observer that panics", observer(func(_ context.Context, _ tools.Call, r tools.Result) {
			if r.Meta.DeniedBy != nil {
				panic(r.Meta.DeniedBy.Rule)
			}
		}), noPanic},
		{"an observer that writes into the value", observer(func(_ context.Context, _ tools.Call, r tools.Result) { clear(r.Value) }), leaves},
		{"an observer that waits for who has gone", observer(func(ctx context.Context, _ tools.Call, _ tools.Result) {
			if ctx.Err() != nil {
				<-block
			}
		}), ends},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			checks := c.stage.checks()
			i := slices.IndexFunc(checks, func(k check) bool { return k.claim == c.found })
			if i < 0 {
				t.Fatalf("there is no claim %q about it", c.found)
			}
			if err := checks[i].find(t); err == nil {
				t.Errorf("nothing was found to speak against %q", c.found)
			}
		})
	}
}

// lockedOut is a listener that hangs when two calls are in it; the first stays
// for a while.
func lockedOut(block chan struct{}) tools.Listener {
	inside := make(chan struct{}, 1)
	return func(_ context.Context, _ tools.Call, next func() verdict) verdict {
		select {
		case inside <- struct{}{}:
			<-time.After(straggles)
		default:
			<-block
		}
		defer func() { <-inside }()
		return next()
	}
}

// raced runs the body twice and takes what comes first.
func raced(ctx context.Context, call *tools.Call, next tools.Body) (json.RawMessage, error) {
	type answer struct {
		value json.RawMessage
		err   error
	}
	both := make(chan answer)
	for range 2 {
		go func() {
			value, err := next(ctx, call)
			both <- answer{value, err}
		}()
	}
	first := <-both
	<-both
	return first.value, first.err
}
