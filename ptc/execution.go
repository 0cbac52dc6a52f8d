package ptc

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// execution is one run of a program.
type execution struct {
	programs *programs
	parent   *tools.Call
	options  Run
	ctx      context.Context
	stop     context.CancelCauseFunc
	lane     *lane
	listing  listing

	known    map[string]tools.Tool
	mu       sync.Mutex
	calls    []*subCall // by runtime.Call.N - 1, in submission order
	denials  map[string]int
	unlogged error // the first printed line that could not be logged
	kept     int64 // bytes of values given to the program
}

// subCall is one call of the program and, once it ended, its result.
type subCall struct {
	n      int
	name   string
	tool   tools.Tool // the zero Tool for an unknown name
	result *tools.Result
}

func newExecution(ctx context.Context, p *programs, parent *tools.Call, options Run) *execution {
	ctx, stop := context.WithCancelCause(ctx)
	x := &execution{
		programs: p, parent: parent, options: options, ctx: ctx, stop: stop,
		lane: newLane(ctx, p.options.InFlight), known: map[string]tools.Tool{}, denials: map[string]int{},
	}
	for _, t := range parent.Registry().Tools() {
		if t.Name != tools.RunCode {
			x.known[t.Name] = t
		}
	}
	return x
}

func (x *execution) run(program runtime.Program) (Report, error) {
	defer x.stop(nil)
	x.listing = newListing(program)
	if err := x.programs.logStart(x.parent, program); err != nil {
		return Report{}, &tools.Error{Code: tools.LogFailed, Message: "the program could not be logged, so it did not run: " + err.Error()}
	}
	outcome, err := x.programs.options.Engine.Run(x.ctx, program, x.host())
	if err != nil {
		return Report{}, err
	}
	report := x.report(outcome)
	if err := x.logEnd(report); err != nil {
		return Report{}, &tools.Error{Code: tools.LogFailed, Message: "the program ended, but its end could not be logged: " + err.Error()}
	}
	x.attach()
	if report.Failure != nil {
		return Report{}, x.failure(report)
	}
	return report, nil
}

// errorClass is the class of the errors that a failed call throws.
const errorClass = "ToolCallError"

func (x *execution) host() runtime.Host {
	h := runtime.Host{
		Object: "tools", ErrorClasses: []string{errorClass},
		Start: x.start, Log: x.print, Human: policy.HumanTime(x.ctx),
	}
	for _, name := range slices.Sorted(maps.Keys(x.known)) {
		h.Functions = append(h.Functions, runtime.Function{Path: []string{name}, Name: name})
	}
	return h
}

// start puts a call of the program on the road.
func (x *execution) start(ctx context.Context, c runtime.Call, reply func(runtime.Reply)) {
	sub := &subCall{n: c.N, name: c.Name, tool: x.known[c.Name]}
	x.mu.Lock()
	x.calls = append(x.calls, sub)
	x.mu.Unlock()
	id := x.id(c.N)
	if x.options.OnCall != nil {
		x.options.OnCall(id, c.Name, nil)
	}
	x.lane.submit(func(s *slot) {
		result := x.parent.Registry().Call(ctx, tools.Request{
			ID: id, Tool: c.Name, Args: c.Args, Parent: x.parent, Lane: s,
			Caller: x.listing.caller(c),
		})
		x.ended(sub, c, result)
		if x.ctx.Err() != nil {
			// The run is being stopped. Once it is, the call's context has
			// ended, and the program does not see this answer.
			<-ctx.Done()
		}
		reply(replyOf(id, c.Name, result))
	})
}

func (x *execution) id(n int) string { return fmt.Sprintf("%s:%d", x.parent.ID, n) }

// maxDenials is how often one and the same call may be denied in a run.
const maxDenials = 3

// ended keeps the result of a call. The same call denied once too often ends
// the run.
func (x *execution) ended(sub *subCall, c runtime.Call, result tools.Result) {
	x.mu.Lock()
	sub.result = &result
	x.kept += int64(len(result.Value))
	repeated := false
	if denied(result) || sandboxDenied(result) {
		key := c.Name + "\x00" + string(c.Args)
		x.denials[key]++
		repeated = x.denials[key] >= maxDenials
	}
	x.mu.Unlock()
	if x.options.OnCall != nil {
		described := x.describe(sub)
		x.options.OnCall(described.ID, described.Tool, &described)
	}
	if repeated {
		x.stop(&runtime.Failure{
			Kind: runtime.Denied, Line: c.Line, Column: c.Column,
			Message: fmt.Sprintf("the same call of %s was denied %d times; do not repeat a denied call", c.Name, maxDenials),
		})
	}
}

func sandboxDenied(r tools.Result) bool {
	return r.Meta.Confinement != nil && r.Meta.Confinement.Denied
}

// callError is what a ToolCallError has besides its message.
type callError struct {
	ToolName  string          `json:"toolName"`
	Code      tools.Code      `json:"code"`
	CallID    string          `json:"callId"`
	Retryable bool            `json:"retryable"`
	Details   json.RawMessage `json:"details,omitempty"`
	DeniedBy  *tools.DeniedBy `json:"deniedBy,omitempty"`
	Hint      string          `json:"hint,omitempty"`
}

func replyOf(id, tool string, r tools.Result) runtime.Reply {
	if r.Error == nil {
		return runtime.Reply{Value: r.Value}
	}
	fields, err := json.Marshal(callError{
		ToolName: tool, Code: r.Error.Code, CallID: id, Retryable: r.Error.Retryable,
		Details: r.Error.Details, DeniedBy: r.Meta.DeniedBy, Hint: hintOf(r),
	})
	if err != nil {
		fields = nil
	}
	return runtime.Reply{Error: &runtime.CallError{Class: errorClass, Message: r.Error.Message, Fields: fields}}
}

// hintOf says in one sentence what a program's author can do.
func hintOf(r tools.Result) string {
	switch {
	case r.Error.Code == tools.InvalidArgs || r.Error.Code == tools.UnknownTool:
		return "see the declarations of tools for names and arguments"
	case sandboxDenied(r) || denied(r):
		return "a denial is policy, not a bug; do not work around it and do not repeat the call unchanged"
	default:
		return ""
	}
}

// print logs one line of the program.
func (x *execution) print(line runtime.Line) {
	if x.options.OnLine != nil {
		x.options.OnLine(line)
	}
	if x.parent.Session == nil {
		return
	}
	_, err := x.parent.Session.Log().Append(session.ProgramLog, logEvent{CallID: x.parent.ID, Line: line})
	if err != nil && x.unlogged == nil {
		x.unlogged = err
		x.stop(&runtime.Failure{Kind: runtime.Abort, Message: "a printed line could not be logged: " + err.Error()})
	}
}

func (x *execution) logEnd(r Report) error {
	if x.parent.Session == nil {
		return nil
	}
	_, err := x.parent.Session.Log().Append(session.ProgramEnd, endEvent{
		CallID: x.parent.ID, Status: r.Status, Failure: r.Failure, Usage: r.Usage, Confinement: r.Confinement,
	})
	return err
}

// report puts together what is known about the run.
func (x *execution) report(o runtime.Outcome) Report {
	r := Report{
		Status: RunOK, Value: o.Value, Failure: o.Failure, Logs: o.Logs, LogsTrimmed: o.LogsTrimmed,
		Calls: []SubCall{}, Effects: []Effect{}, SafeToRetry: true,
		Usage: newUsage(o.Usage), Confinement: o.Confinement,
	}
	if r.Logs == nil {
		r.Logs = []runtime.Line{}
	}
	for _, sub := range x.calls {
		r.Calls = append(r.Calls, x.describe(sub))
		r.addEffect(x.id(sub.n), sub)
	}
	if r.Failure == nil {
		r.Failure = x.detached(o.Unanswered)
	}
	if r.Failure != nil {
		r.Status, r.Value = RunFailed, nil
	}
	r.Saved = Saved{BytesKept: x.kept, BytesReturned: returned(r), RoundTrips: max(0, len(r.Calls)-1)}
	return r
}

func (r *Report) addEffect(id string, sub *subCall) {
	if !sub.mayChange() {
		return
	}
	state := effectOf(sub)
	r.Effects = append(r.Effects, Effect{ID: id, Tool: sub.name, State: state})
	if state != EffectNotStarted {
		r.SafeToRetry = false
	}
}

func (x *execution) describe(sub *subCall) SubCall {
	d := SubCall{
		ID: x.id(sub.n), Tool: sub.name, Status: statusOf(*sub.result),
		DurationMS: sub.result.Meta.DurationMS, DeniedBy: sub.result.Meta.DeniedBy,
	}
	if sub.result.Error != nil {
		d.Code = sub.result.Error.Code
	}
	return d
}

// detached is the failure of a program that ended while calls which may change
// something were running; nil when there are none.
func (x *execution) detached(unanswered []int) *runtime.Failure {
	var names []string
	for _, n := range unanswered {
		sub := x.calls[n-1]
		if sub.result.Meta.Started && sub.mayChange() {
			names = append(names, fmt.Sprintf("%s (%s)", x.id(n), sub.name))
		}
	}
	if names == nil {
		return nil
	}
	return &runtime.Failure{Kind: runtime.DetachedCalls, Message: fmt.Sprintf(
		"the program ended without awaiting calls that may have changed something: %s; await every call", strings.Join(names, ", "))}
}

// attach lets the images and the context of sub-calls follow the result.
func (x *execution) attach() {
	for _, sub := range x.calls {
		for _, block := range sub.result.Content {
			if block.Type != "text" {
				x.parent.Attach(block)
			}
		}
		x.parent.Attach(sub.result.Meta.Context...)
	}
}

// failure is the error of a run that failed.
func (x *execution) failure(r Report) error {
	details, err := json.Marshal(r)
	if err != nil {
		return err
	}
	code := ProgramFailed
	switch {
	case r.Failure.Kind == runtime.SandboxUnavailable:
		code = tools.SandboxUnavailable
	case r.Failure.Kind == runtime.Abort:
		code = tools.Aborted
	}
	return &tools.Error{Code: code, Message: render(r), Details: details}
}

func returned(r Report) int64 {
	n := int64(len(r.Value))
	for _, line := range r.Logs {
		n += int64(len(line.Text))
	}
	return n
}
