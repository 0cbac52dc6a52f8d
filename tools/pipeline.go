package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dsh-run/dsh/policy"
)

// Call walks one call down the road and returns its result. It returns after
// the body, and every call that has it as Parent, has really stopped, also when
// ctx ended. Whatever is wrong with a call is in its result.
//
// A call with a Parent goes through the Parent's registry, unless r is a view of
// that: it can reach no more than its Parent.
func (r *Registry) Call(ctx context.Context, req Request) Result {
	e := r.under(req.Parent).newExecution(req)
	ctx, span := e.beginSpan(ctx)
	result := e.walk(ctx)
	e.report(ctx, span, result)
	return result
}

// walk is the order of the road.
func (e *execution) walk(ctx context.Context) Result {
	if e.orphan = !e.parent.join(); !e.orphan {
		defer e.parent.leave()
	}
	if err := e.logCall(); err != nil {
		e.commit()
		return e.unlogged("the call could not be logged, so it did not run", err)
	}
	value, failure := e.before(ctx)
	if failure == nil {
		value, failure = e.dispatch(ctx)
	}
	e.call.below.end()
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
	parent   *Call
	orphan   bool   // the parent has ended
	attempt  *facts // of the last attempt of the body
	start    time.Time
	timeout  time.Duration // of one attempt, beside the tool's own
	verdict  Verdict
	wider    *policy.Widening // what its arguments ask for; nil: nothing
	deniedBy *DeniedBy
	started  bool
	returned bool // the last attempt of the body returned without an error
	attempts int
}

func (r *Registry) newExecution(req Request) *execution {
	c := r.current()
	e := &execution{registry: r, config: c, lane: req.Lane, tool: c.tools[req.Tool], parent: req.Parent, attempt: &facts{}, timeout: req.Timeout, start: time.Now()}
	e.call = &Call{
		ID: req.ID, Tool: req.Tool, Args: bytes.Clone(req.Args), Caller: req.Caller, Session: req.Session,
		Mode: r.options.Mode, Root: r.options.Root, facts: &facts{}, below: &family{}, registry: r,
	}
	if e.parent != nil {
		e.inherit()
	}
	e.complete()
	return e
}

// inherit fills what a call has from its parent.
func (e *execution) inherit() {
	c, p := e.call, e.parent
	c.ParentID, c.RootID, c.Session = p.ID, p.RootID, p.Session
	if c.Caller == (policy.Caller{}) {
		c.Caller = p.Caller
	}
	if c.ID == "" && p.ID != "" && p.below != nil {
		c.ID = fmt.Sprintf("%s:%d", p.ID, p.below.next())
	}
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
		c.ID = s.rootID(c.ID)
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
		e.belong, e.materialise, e.listen, e.checkWidening, e.guard, e.approve, e.enter,
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
	if known := nearest(name, maps.Keys(c.tools)); known != "" {
		return fmt.Sprintf("there is no tool %.100q; did you mean %q?", name, known)
	}
	return fmt.Sprintf("there is no tool %.100q; there are: %s", name, strings.Join(slices.Sorted(maps.Keys(c.tools)), ", "))
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
