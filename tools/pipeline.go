package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
)

// Call walks one call down the road and returns its result. It returns after
// the body has really stopped, also when ctx ended. A call without an ID, a
// session's call before NewSession's fold, and a Parent without an ID are the
// caller's business; everything about the tool and its arguments is a result.
func (r *Registry) Call(ctx context.Context, req Request) Result {
	e := r.newExecution(req)
	if err := e.logCall(); err != nil {
		e.commit()
		return e.unlogged("the call could not be logged, so it did not run", err)
	}
	value, failure := e.before(ctx)
	if failure == nil {
		value, failure = e.dispatch(ctx)
	}
	e.commit()
	return e.end(ctx, e.result(value, failure))
}

// execution is one call on the road.
type execution struct {
	registry *Registry
	config   *config
	lane     Lane
	tool     *compiled // nil for an unknown tool
	call     *Call
	start    time.Time
	verdict  Verdict
	deniedBy *DeniedBy
	started  bool
}

func (r *Registry) newExecution(req Request) *execution {
	c := r.current()
	e := &execution{registry: r, config: c, lane: req.Lane, tool: c.tools[req.Tool], start: time.Now()}
	e.call = &Call{
		ID: req.ID, Tool: req.Tool, Args: bytes.Clone(req.Args), Caller: req.Caller, Session: req.Session,
		Mode: r.options.Mode, Root: r.options.Root, facts: &facts{}, registry: r,
	}
	if req.Parent != nil {
		e.call.ParentID, e.call.RootID = req.Parent.ID, req.Parent.RootID
		e.call.Session = req.Parent.Session
	}
	e.complete()
	return e
}

// complete fills what the request left to defaults.
func (e *execution) complete() {
	c := e.call
	if len(c.Args) == 0 {
		c.Args = json.RawMessage("{}")
	}
	if c.Caller.Kind == "" {
		c.Caller.Kind = policy.Direct
	}
	if s := c.Session; s != nil {
		state := s.State()
		c.Mode, c.Approval, c.Root = state.Mode, state.Approval, state.Root
		if c.ID == "" {
			c.ID = s.nextRootID()
		}
	}
	if c.RootID == "" {
		c.RootID = c.ID
	}
	if e.tool != nil {
		c.Confined, c.Effect = e.tool.Confined, e.tool.Effect
	}
}

// before is the order of the stages in front of the body.
func (e *execution) before(ctx context.Context) (json.RawMessage, *Error) {
	for _, stage := range []func(context.Context) *Error{
		e.materialise, e.listen, e.checkWidening, e.guard, e.approve, e.enter,
	} {
		if ctx.Err() != nil {
			return nil, abortedBefore(ctx)
		}
		if err := stage(ctx); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func abortedBefore(ctx context.Context) *Error {
	return &Error{Code: AbortedBeforeDispatch, Message: "cancelled before it started: " + context.Cause(ctx).Error()}
}

func (e *execution) deny(stage Stage, rule string, err *Error) *Error {
	e.deniedBy = &DeniedBy{Stage: stage, Rule: rule}
	return err
}

func (e *execution) materialise(context.Context) *Error {
	if err := e.offered(); err != nil {
		return e.deny(StageMaterialise, "", err)
	}
	args, err := e.tool.arguments(e.call.Args)
	if err != nil {
		return e.deny(StageMaterialise, "", err)
	}
	e.call.Args = args
	return nil
}

// offered refuses what a caller of this kind is not offered.
func (e *execution) offered() *Error {
	program := e.call.Caller.Kind == policy.Program
	switch {
	case e.tool == nil:
		return &Error{Code: UnknownTool, Message: e.config.unknownTool(e.call.Tool)}
	case program && e.call.Tool == RunCode:
		return &Error{Code: UnknownTool, Message: "run_code cannot be called from inside a program; call the tools themselves"}
	case !program && !offered(e.registry.options.Presentation, e.call.Tool):
		return &Error{Code: UnknownTool, Message: fmt.Sprintf("%s is not offered for direct calls here; %s", e.call.Tool, reach(e.registry.options.Presentation, e.call.Tool))}
	}
	return nil
}

func reach(p Presentation, tool string) string {
	if p == Native {
		return "programs are switched off, call the tools directly"
	}
	return fmt.Sprintf("call run_code with a program that does `await tools[%q](…)`", tool)
}

func (c *config) unknownTool(name string) string {
	if known := nearest(name, c.tools); known != "" {
		return fmt.Sprintf("there is no tool %q; did you mean %q?", name, known)
	}
	return fmt.Sprintf("there is no tool %q; there are: %s", name, strings.Join(slices.Sorted(maps.Keys(c.tools)), ", "))
}

// listen asks the chain of listeners.
func (e *execution) listen(ctx context.Context) *Error {
	e.verdict = e.ask(ctx, e.config.listeners)
	switch e.verdict.Judgement {
	case Allow, AskPerson:
		return nil
	case Cancel:
		if ctx.Err() != nil {
			return abortedBefore(ctx)
		}
	}
	code := e.verdict.Code
	if code == "" {
		code = DeniedByListener
	}
	return e.deny(StageListener, e.verdict.rule, &Error{Code: code, Message: "denied: " + e.verdict.Reason, Details: e.verdict.Details})
}

func (e *execution) ask(ctx context.Context, listeners []named[Listener]) (v Verdict) {
	if len(listeners) == 0 {
		return Verdict{Judgement: Allow}
	}
	l := listeners[0]
	defer func() {
		if r := recover(); r != nil {
			v = Verdict{Judgement: Deny, Reason: fmt.Sprintf("the listener %s panicked: %v", l.name, r), rule: l.name}
		}
	}()
	v = l.f(ctx, e.call.frozen(), func() Verdict { return e.ask(ctx, listeners[1:]) })
	if v.Judgement > Cancel {
		v = Verdict{Judgement: Deny, Reason: fmt.Sprintf("the listener %s answered with an unknown judgement %d", l.name, v.Judgement)}
	}
	if v.rule == "" {
		v.rule = l.name
	}
	return v
}

// guard lets each guard veto the call.
func (e *execution) guard(ctx context.Context) *Error {
	for _, g := range e.config.guards {
		if err := contain(func() error { return g.f(ctx, e.call.frozen()) }); err != nil {
			return e.deny(StageGuard, g.name, &Error{Code: DeniedByGuard, Message: fmt.Sprintf("denied by the guard %s: %v", g.name, err)})
		}
	}
	return nil
}

// contain runs f and makes a panic an error.
func contain(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	return f()
}

// enter waits for the call's turn among its siblings.
func (e *execution) enter(ctx context.Context) *Error {
	if e.lane == nil {
		return nil
	}
	if err := e.lane.Enter(func() bool { return e.tool.overlaps(e.call.Args) }); err != nil {
		return &Error{Code: AbortedBeforeDispatch, Message: "cancelled before it started: " + err.Error()}
	}
	return nil
}

func (e *execution) commit() {
	if e.lane != nil {
		e.lane.Commit()
	}
}

// dispatch runs the body inside its wrappers.
func (e *execution) dispatch(ctx context.Context) (json.RawMessage, *Error) {
	if ctx.Err() != nil {
		return nil, abortedBefore(ctx)
	}
	body := e.retry(e.timeout(e.attempt))
	for _, w := range slices.Backward(e.config.wrappers) {
		body = e.wrap(w, body)
	}
	value, err := body(ctx, e.call)
	if err == nil && ctx.Err() == nil {
		return value, nil
	}
	return nil, e.failure(ctx, err)
}

// wrap contains a wrapper: a panic in it fails the call.
func (e *execution) wrap(w named[Wrapper], next Body) Body {
	return func(ctx context.Context, call *Call) (value json.RawMessage, err error) {
		defer func() {
			if r := recover(); r != nil {
				value, err = nil, &Error{Code: ToolFailed, Message: fmt.Sprintf("the wrapper %s panicked: %v", w.name, r)}
			}
		}()
		return w.f(next)(ctx, call)
	}
}

// attempt is the innermost body: the guards once more, then the tool.
func (e *execution) attempt(ctx context.Context, call *Call) (json.RawMessage, error) {
	if err := e.guard(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil && !e.started {
		return nil, abortedBefore(ctx)
	}
	e.started = true
	var value json.RawMessage
	err := contain(func() (err error) {
		value, err = e.tool.Handle(ctx, call)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := e.tool.value(value); err != nil {
		return nil, err
	}
	return value, nil
}

// failure is the one translation from a body's error to the call's.
func (e *execution) failure(ctx context.Context, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if ctx.Err() != nil {
		return &Error{Code: Aborted, Message: "cancelled while it ran: " + context.Cause(ctx).Error()}
	}
	return &Error{Code: ToolFailed, Message: err.Error()}
}

// result renders what the body left.
func (e *execution) result(value json.RawMessage, failure *Error) Result {
	r := Result{Meta: Meta{CallID: e.call.ID, DeniedBy: e.deniedBy, Started: e.started}}
	if failure == nil {
		if failure = e.render(&r, value); failure == nil {
			r.Value = value
		}
	}
	if failure != nil {
		r.fail(failure)
	}
	e.call.facts.mu.Lock()
	defer e.call.facts.mu.Unlock()
	r.Meta.Confinement = e.call.facts.confinement
	r.Content = append(r.Content, e.call.facts.attached...)
	return r
}

func (r *Result) fail(err *Error) {
	r.Value = nil
	r.Error = err
	r.Content = []Content{Text(err.Error())}
}

// render fills the content of a value.
func (e *execution) render(r *Result, value json.RawMessage) *Error {
	if e.tool.Render == nil {
		r.Content = []Content{Text(string(value))}
		return nil
	}
	err := contain(func() error {
		r.Content = e.tool.Render(bytes.Clone(e.call.Args), bytes.Clone(value))
		return nil
	})
	if err != nil {
		return &Error{Code: ToolFailed, Message: "the tool ran, but its result could not be rendered: " + err.Error()}
	}
	return nil
}

// end is the order of the stages behind the body.
func (e *execution) end(ctx context.Context, r Result) Result {
	r.Meta.DurationMS = time.Since(e.start).Milliseconds()
	for _, p := range slices.Backward(e.config.posts) {
		e.amend(ctx, p, &r)
	}
	if err := e.logResult(r); err != nil {
		r = e.unlogged("the call ended, but its result could not be logged", err)
	}
	for _, o := range e.config.observers {
		if err := contain(func() error { o.f(ctx, e.call.frozen(), r.frozen()); return nil }); err != nil {
			e.registry.options.Logger.Error("observer failed", "observer", o.name, "call", e.call.ID, "error", err)
		}
	}
	return r
}

// amend applies one post-execute step.
func (e *execution) amend(ctx context.Context, p named[Post], r *Result) {
	var a Amendment
	err := contain(func() (err error) {
		a, err = p.f(ctx, e.call.frozen(), r.frozen())
		return err
	})
	if err == nil && a.Value != nil && a.Content != nil {
		err = errors.New("it replaced both value and content")
	}
	if err == nil && a.Value != nil && r.Error != nil {
		err = errors.New("it gave a value to a failed call")
	}
	if err == nil && a.Value != nil {
		if refused := e.tool.value(a.Value); refused != nil {
			err = refused
		}
	}
	switch {
	case err != nil:
		e.block(r, p.name, &Error{Code: ToolFailed, Message: fmt.Sprintf("the post-execute step %s failed: %v", p.name, err)})
		return
	case a.Block != "":
		e.block(r, p.name, &Error{Code: BlockedByPost, Message: fmt.Sprintf("blocked by %s: %s", p.name, a.Block)})
	case a.Value != nil:
		if err := e.render(r, a.Value); err != nil {
			e.block(r, p.name, err)
		} else {
			r.Value = a.Value
		}
	case a.Content != nil:
		r.Content = a.Content
	}
	r.Meta.Context = append(r.Meta.Context, a.Context...)
}

// block makes the call a failure; one that has failed keeps its first error.
func (e *execution) block(r *Result, rule string, err *Error) {
	if r.Error != nil {
		return
	}
	r.fail(err)
	r.Meta.DeniedBy = &DeniedBy{Stage: StagePost, Rule: rule}
}

func (r Result) frozen() Result {
	r.Value = bytes.Clone(r.Value)
	r.Content = slices.Clone(r.Content)
	r.Meta.Context = slices.Clone(r.Meta.Context)
	if r.Error != nil {
		copied := *r.Error
		r.Error = &copied
	}
	return r
}

func (e *execution) logCall() error {
	if e.call.Session == nil {
		return nil
	}
	log := e.call.Session.Log()
	event, err := newCallEvent(log, e.call)
	if err != nil {
		return err
	}
	_, err = log.Append(session.ToolCall, event)
	return err
}

// logResult writes tool/result; the end of a root call reaches the disk.
func (e *execution) logResult(r Result) error {
	if e.call.Session == nil {
		return nil
	}
	log := e.call.Session.Log()
	event, err := newResultEvent(log, r)
	if err != nil {
		return err
	}
	if _, err := log.Append(session.ToolResult, event); err != nil {
		return err
	}
	if c := r.Meta.Confinement; c != nil && c.Denied {
		e.call.Session.sawDenial(e.call.ID, e.call.Tool, e.call.Args)
	}
	if e.call.ParentID == "" {
		return log.Sync()
	}
	return nil
}

// unlogged is the result of a call that could not be written down.
func (e *execution) unlogged(what string, err error) Result {
	r := Result{Meta: Meta{CallID: e.call.ID, Started: e.started, DurationMS: time.Since(e.start).Milliseconds()}}
	r.fail(&Error{Code: LogFailed, Message: what + ": " + err.Error()})
	return r
}
