package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

var seedFlag = flag.Uint64("tools.seed", 0, "seed of the random set-ups, as a failure printed it; 0 for another one each time")

// setups is how many random set-ups a law is tried on.
const setups = 300

// byChance tries a law on random set-ups, in one session.
func byChance(t *testing.T, law func(*chance)) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	base := newRoad(t, policy.Ask, nil)
	log := &eventLog{events: map[eventKey][]loggedEvent{}}
	if err := base.session.Log().Follow(log.add); err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	defer func() {
		if t.Failed() {
			t.Logf("it was set-up %d of -tools.seed=%d", n, seed)
		}
	}()
	for ; n < setups; n++ {
		synctest.Test(t, func(t *testing.T) {
			law(&chance{T: t, Rand: rand.New(rand.NewPCG(seed, n)), session: base.session, log: log})
		})
	}
}

// chance makes one random set-up.
type chance struct {
	*testing.T
	*rand.Rand
	session *tools.Session
	log     *eventLog
}

func (c *chance) one(n int) bool { return c.IntN(n) == 0 }

// pick calls one of the choices.
func pick[R any](c *chance, choices ...func() R) R { return choices[c.IntN(len(choices))]() }

func (c *chance) registry(answer policy.Outcome, at func()) *tools.Registry {
	return tools.NewRegistry(&tools.Options{
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Approvals: policy.NewApprovals(0, policy.Answerer{Name: "stub",
			Answer: func(context.Context, policy.Question) (policy.Outcome, error) { at(); return answer, nil }}),
	})
}

// eventLog keeps the events of calls.
type eventLog struct {
	mu     sync.Mutex
	events map[eventKey][]loggedEvent
}

type eventKey struct {
	kind session.Type
	call string
}

// loggedEvent is what a law looks at.
type loggedEvent struct {
	CallID string          `json:"call_id"`
	Args   json.RawMessage `json:"args"`
	Value  json.RawMessage `json:"value"`
	Error  *struct {
		Code tools.Code `json:"code"`
	} `json:"error"`
}

func (l *eventLog) add(e session.Event) {
	var data loggedEvent
	if json.Unmarshal(e.Data, &data) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key := eventKey{e.Type, data.CallID}
	l.events[key] = append(l.events[key], data)
}

// logged returns the only event of the kind for the call.
func (c *chance) logged(kind session.Type, call string) loggedEvent {
	c.Helper()
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	found := c.log.events[eventKey{kind, call}]
	if len(found) != 1 {
		c.Fatalf("%d events %s of call %s, want one", len(found), kind, call)
	}
	return found[0]
}

// listener is one that does anything a listener can do.
func (c *chance) listener() tools.Listener {
	verdict := tools.Verdict{Judgement: tools.Judgement(c.IntN(6)), Reason: "by chance"}
	tamper, calls, late, panics := c.one(2), c.IntN(3), c.one(4), c.one(8)
	return func(_ context.Context, call tools.Call, next func() tools.Verdict) tools.Verdict {
		if tamper {
			copy(call.Args, bytes.Repeat([]byte("x"), len(call.Args)))
		}
		last := verdict
		for range calls {
			last = next()
		}
		if late {
			go next()
		}
		if panics {
			panic("by chance")
		}
		if verdict.Judgement == tools.AskPerson {
			return last
		}
		return verdict
	}
}

func TestNoListenersCanRunWhatAGuardVetoes(t *testing.T) {
	byChance(t, func(c *chance) {
		r := c.registry(policy.AllowedOnce, func() {})
		ran := false
		r.Add(raw(tools.Tool{}, func(context.Context, *tools.Call) (json.RawMessage, error) {
			ran = true
			return json.RawMessage("1"), nil
		}))
		stages := []func(){func() {
			r.Guard("veto", func(_ context.Context, call tools.Call) error {
				if string(call.Args) == `{"path":"/etc/passwd"}` {
					return errors.New("never")
				}
				return nil
			})
		}}
		for range c.IntN(6) {
			stages = append(stages, func() { r.Listen("chance", c.listener()) })
		}
		for range c.IntN(2) {
			stages = append(stages, func() { r.Guard("fine", func(context.Context, tools.Call) error { return nil }) })
		}
		c.Shuffle(len(stages), func(i, j int) { stages[i], stages[j] = stages[j], stages[i] })
		for _, register := range stages {
			register()
		}
		result := r.Call(c.Context(), tools.Request{Tool: "t", Args: json.RawMessage(`{"path":"/etc/passwd"}`), Session: c.session})
		if code := codeOf(result); ran || code != tools.DeniedByGuard && code != tools.DeniedByListener {
			c.Errorf("the body ran: %v, error %v", ran, result.Error)
		}
	})
}

// spoil changes whatever a stage can reach from its copy.
func spoil(call *tools.Call) {
	for i := range call.Args {
		call.Args[i] = 'x'
	}
	call.Args = json.RawMessage(`{"path":"/etc/shadow"}`)
	call.Tool, call.ID, call.Mode, call.Root = "other", "c0", policy.DangerFullAccess, "/"
}

func spoilResult(r *tools.Result) {
	for i := range r.Value {
		r.Value[i] = '7'
	}
	for _, blocks := range [][]tools.Content{r.Content, r.Meta.Context} {
		for i := range blocks {
			blocks[i].Text = "spoilt"
			for j := range blocks[i].Data {
				blocks[i].Data[j] = 'x'
			}
		}
	}
	if r.Error != nil {
		for i := range r.Error.Details {
			r.Error.Details[i] = '7'
		}
		r.Error.Code, r.Error.Message = "SPOILT", "spoilt"
	}
	if r.Meta.DeniedBy != nil {
		r.Meta.DeniedBy.Rule = "spoilt"
	}
	if c := r.Meta.Confinement; c != nil {
		c.Backend = "spoilt"
		for i := range c.Reasons {
			c.Reasons[i] = "spoilt"
		}
	}
}

// clean reports whether a result is as its call left it.
func clean(r tools.Result) bool {
	text, _ := json.Marshal(r)
	return !bytes.Contains(text, []byte("spoilt")) && !bytes.Contains(text, []byte("SPOILT")) && !bytes.Contains(text, []byte("777"))
}

func TestNoStageSeesOtherArgumentsThanThoseLogged(t *testing.T) {
	byChance(t, func(c *chance) {
		args := fmt.Sprintf(`{"path":"/%x"}`, c.Uint64())
		r := c.registry(policy.AllowedOnce, func() {})
		seen := map[string]int{}
		see := func(stage string, call *tools.Call) {
			seen[stage]++
			if string(call.Args) != args || call.Tool != "t" || call.ID == "c0" || call.Mode != policy.WorkspaceWrite {
				c.Errorf("%s saw %s %s %s in %s", stage, call.ID, call.Tool, call.Args, call.Mode)
			}
			spoil(call)
		}
		kept := json.RawMessage(`{"n":123}`)
		failing := c.one(2)
		tool := raw(tools.Tool{Idempotent: true}, func(_ context.Context, call *tools.Call) (json.RawMessage, error) {
			call.Confine(policy.Confinement{Backend: "path", Reasons: []string{policy.Network}})
			call.Attach(tools.Image([]byte("png"), "image/png"))
			see("body", call)
			if failing {
				return nil, &tools.Error{Code: "BUSY", Message: "m", Details: kept, Retryable: true}
			}
			return kept, nil
		})
		r.Add(tool)
		for range 1 + c.IntN(2) {
			ask := c.one(2)
			r.Listen("l", func(_ context.Context, call tools.Call, next func() tools.Verdict) tools.Verdict {
				see("listener", &call)
				if v := next(); !ask {
					return v
				}
				return tools.Verdict{Reason: "sure?"}
			})
			r.Guard("g", func(_ context.Context, call tools.Call) error { see("guard", &call); return nil })
			r.Wrap("w", func(next tools.Body) tools.Body {
				return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
					see("wrapper", call)
					return next(ctx, call)
				}
			})
			r.After("p", func(_ context.Context, call tools.Call, result tools.Result) (tools.Amendment, error) {
				see("post", &call)
				if !clean(result) {
					c.Errorf("a post saw %+v", result)
				}
				spoilResult(&result)
				context := []tools.Content{tools.Text("context")}
				return tools.Amendment{Context: context}, nil
			})
			r.Observe("o", func(_ context.Context, call tools.Call, result tools.Result) {
				see("observer", &call)
				if !clean(result) {
					c.Errorf("an observer saw %+v", result)
				}
				spoilResult(&result)
			})
		}
		sent := json.RawMessage(args)
		result := r.Call(c.Context(), tools.Request{Tool: "t", Args: sent, Session: c.session})
		copy(kept, `{"n":777}`)
		if logged := c.logged(session.ToolCall, result.Meta.CallID); string(logged.Args) != args || string(sent) != args {
			c.Errorf("logged %s, the caller's are %s now, want %s", logged.Args, sent, args)
		}
		if !clean(result) || (result.Error != nil) != failing {
			c.Errorf("result %+v", result)
		}
		if len(seen) != 6 {
			c.Errorf("only %v saw the call", seen)
		}
	})
}

// failure makes the call of the tool t fail, whatever comes after.
func (c *chance) failure(r *tools.Registry) (args string, denied tools.Stage) {
	args = `{}`
	tool := raw(tools.Tool{Timeout: time.Second, MaxValue: 64, Idempotent: c.one(2), Output: json.RawMessage(`{"type":"integer"}`)}, returning("1", nil))
	add := func(handle tools.Handler) tools.Stage { tool.Handle = handle; return "" }
	denied = pick(c,
		func() tools.Stage { args = `[]`; return tools.StageMaterialise },
		func() tools.Stage { r.Listen("no", denyAll); return tools.StageListener },
		func() tools.Stage { asking(&road{Registry: r}); return tools.StageApproval },
		func() tools.Stage { c.veto(r); return tools.StageGuard },
		func() tools.Stage { return add(returning("", errors.New("boom"))) },
		func() tools.Stage {
			return add(returning("", &tools.Error{Code: "BUSY", Message: "m", Retryable: true}))
		},
		func() tools.Stage {
			return add(func(context.Context, *tools.Call) (json.RawMessage, error) { panic("ouch") })
		},
		func() tools.Stage { return add(untilDone) },
		func() tools.Stage { return add(returning(`"no integer"`, nil)) },
		func() tools.Stage { return add(returning(`no JSON`, nil)) },
		func() tools.Stage { return add(returning(fmt.Sprintf("%065d", 1), nil)) },
		func() tools.Stage {
			tool.Render = func(_, _ json.RawMessage) []tools.Content { panic("ouch") }
			return ""
		},
	)
	r.Add(tool)
	return args, denied
}

// veto lets a guard deny at any of its turns; no later one takes it back.
func (c *chance) veto(r *tools.Registry) {
	turn, asked := c.IntN(2), 0
	r.Guard("veto", func(context.Context, tools.Call) error {
		asked++
		if asked-1 == turn {
			return errors.New("never")
		}
		return nil
	})
}

// wrapper is one that does its best to turn a failure into a success.
func (c *chance) wrapper() tools.Wrapper {
	calls, alone, panics := 1+c.IntN(3), c.one(3), c.one(8)
	value := pick(c, func() string { return "1" }, func() string { return "" }, func() string { return "null" })
	return func(next tools.Body) tools.Body {
		return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
			if alone {
				ctx = context.Background()
			}
			for range calls {
				next(ctx, &tools.Call{Tool: "other"})
			}
			if panics {
				panic("by chance")
			}
			return json.RawMessage(value), nil
		}
	}
}

func (c *chance) post() tools.Post {
	a := pick(c,
		func() tools.Amendment { return tools.Amendment{Value: json.RawMessage("1")} },
		func() tools.Amendment { return tools.Amendment{Content: []tools.Content{tools.Text("1")}} },
		func() tools.Amendment { return tools.Amendment{Context: []tools.Content{tools.Text("1")}} },
		func() tools.Amendment { return tools.Amendment{Block: "no"} },
		func() tools.Amendment { return tools.Amendment{} },
	)
	panics, fails := c.one(8), c.one(8)
	return func(_ context.Context, _ tools.Call, result tools.Result) (tools.Amendment, error) {
		spoilResult(&result)
		result.Error, result.Value = nil, json.RawMessage("1")
		if panics {
			panic("by chance")
		}
		if fails {
			return a, errors.New("by chance")
		}
		return a, nil
	}
}

func TestAFailureNeverBecomesASuccess(t *testing.T) {
	byChance(t, func(c *chance) {
		r := c.registry(policy.Rejected, func() {})
		args, denied := c.failure(r)
		for range c.IntN(3) {
			r.Wrap("chance", c.wrapper())
		}
		for range c.IntN(4) {
			r.After("chance", c.post())
		}
		for range c.IntN(3) {
			r.Observe("chance", func(_ context.Context, _ tools.Call, result tools.Result) {
				spoilResult(&result)
				panic("by chance")
			})
		}
		result := r.Call(c.Context(), tools.Request{Tool: "t", Args: json.RawMessage(args), Session: c.session})
		logged := c.logged(session.ToolResult, result.Meta.CallID)
		if result.Error == nil || result.Value != nil || logged.Error == nil || logged.Value != nil || logged.Error.Code != result.Error.Code {
			c.Errorf("error %v, value %s; logged %+v", result.Error, result.Value, logged)
		}
		if by := result.Meta.DeniedBy; denied != "" && (by == nil || by.Stage != denied) {
			c.Errorf("denied by %+v, want %s; error %v", by, denied, result.Error)
		}
		if denied == tools.StageGuard && codeOf(result) != tools.DeniedByGuard {
			c.Errorf("error %v, want the guard's", result.Error)
		}
	})
}

// canceller cancels a call at one of the points that it passes.
type canceller struct {
	cancel context.CancelFunc
	at     int // -1 for never

	mu           sync.Mutex
	points       int
	behind, late bool // the stages behind the body began; and before the cancelling
}

func (x *canceller) point() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.points == x.at {
		x.late = x.behind
		x.cancel()
	}
	x.points++
}

func (x *canceller) bodyEnded() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.behind = true
}

// passed is how many points were passed, and whether the cancelling came late.
func (x *canceller) passed() (points int, late bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.points, x.late
}

// build makes the same set-up for the same seed.
func (c *chance) build(x *canceller) (*tools.Registry, *journey) {
	j := &journey{}
	r := c.registry(policy.AllowedOnce, x.point)
	ask, alone, retried, waits := c.one(2), c.one(2), c.IntN(4), c.one(2)
	r.Add(raw(tools.Tool{Idempotent: true}, func(ctx context.Context, _ *tools.Call) (json.RawMessage, error) {
		j.started, j.running = true, true
		defer func() { j.running = false }()
		x.point()
		if waits && x.at >= 0 {
			if err := j.wait(ctx); err != nil {
				return nil, err
			}
		}
		x.point()
		if retried--; retried >= 0 {
			time.AfterFunc(time.Millisecond, x.point) // while the pipeline pauses
			return nil, &tools.Error{Code: "BUSY", Message: "m", Retryable: true}
		}
		return json.RawMessage("1"), nil
	}))
	for range 1 + c.IntN(2) {
		r.Listen("l", func(_ context.Context, _ tools.Call, next func() tools.Verdict) tools.Verdict {
			x.point()
			v := next()
			x.point()
			if ask {
				return tools.Verdict{Reason: "sure?"}
			}
			return v
		})
		r.Guard("g", func(context.Context, tools.Call) error { x.point(); return nil })
		r.Wrap("w", func(next tools.Body) tools.Body {
			return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
				x.point()
				defer x.point()
				if alone {
					ctx = context.Background()
				}
				return next(ctx, call)
			}
		})
		r.After("p", func(context.Context, tools.Call, tools.Result) (tools.Amendment, error) {
			x.bodyEnded()
			x.point()
			return tools.Amendment{}, nil
		})
		r.Observe("o", func(context.Context, tools.Call, tools.Result) { x.point() })
	}
	return r, j
}

// journey is what the body of a call did.
type journey struct {
	started, running bool
}

// wait is a body's wait for its context, or for nothing at all.
func (j *journey) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
		return nil
	}
}

func TestACancelledCallEndsInOneOfItsWays(t *testing.T) {
	byChance(t, func(c *chance) {
		seed := c.Uint64()
		run := func(at int) (tools.Result, *journey, *canceller) {
			ctx, cancel := context.WithCancel(c.Context())
			defer cancel()
			x := &canceller{at: at, cancel: cancel}
			again := &chance{T: c.T, Rand: rand.New(rand.NewPCG(seed, seed)), session: c.session, log: c.log}
			r, j := again.build(x)
			return r.Call(ctx, tools.Request{Tool: "t", Session: c.session}), j, x
		}
		_, _, whole := run(-1)
		all, _ := whole.passed()
		at := c.IntN(all)
		result, j, x := run(at)
		points, late := x.passed()
		c.logged(session.ToolCall, result.Meta.CallID)
		c.logged(session.ToolResult, result.Meta.CallID)
		if j.running {
			c.Error("the call returned before its body")
		}
		code := codeOf(result)
		switch {
		case points <= at: // it took another way, and was not cancelled
		case code == "BUSY" && j.started:
		case late && code == "": // it had succeeded before
		case code == tools.Aborted && j.started && result.Meta.Started:
		case code == tools.AbortedBeforeDispatch && !j.started && !result.Meta.Started:
		default:
			c.Errorf("cancelled at point %d of %d: error %v, the body began: %v, result says %v", at, all, result.Error, j.started, result.Meta.Started)
		}
	})
}
