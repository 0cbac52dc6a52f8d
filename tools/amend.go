package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dsh-run/dsh/policy"
)

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
			e.complain("observer failed", o.name, err)
		}
	}
	return r
}

// complain tells the embedder what no result can say.
func (e *execution) complain(what, name string, err error) {
	e.registry.options.Logger.Error(what, "name", name, "call", e.call.ID, "error", err)
}

// result renders what the body left.
func (e *execution) result(value json.RawMessage, failure *Error) Result {
	r := Result{Meta: e.meta()}
	if failure == nil {
		failure = e.show(&r, value)
	}
	if failure != nil {
		r.fail(failure)
		_, attached := e.learned()
		r.Content = append(r.Content, attached...)
	}
	return r
}

// meta are the facts that are known when the body has ended.
func (e *execution) meta() Meta {
	m := Meta{CallID: e.call.ID, DeniedBy: e.deniedBy, Started: e.started, Returned: e.returned}
	if e.attempts > 1 {
		m.Attempts = e.attempts
	}
	m.Confinement, _ = e.learned()
	return m
}

// learned are the facts of the last attempt of the body and its wrappers.
func (e *execution) learned() (*policy.Confinement, []Content) {
	return e.attempt.learned(e.call.facts)
}

// show makes value the result, with what is seen of it.
func (e *execution) show(r *Result, value json.RawMessage) *Error {
	content, err := e.render(value)
	if err != nil {
		return &Error{Code: ToolFailed, Message: "the tool ran, but its result could not be rendered: " + err.Error()}
	}
	_, attached := e.learned()
	r.Value, r.Content = value, append(append([]Content{}, content...), attached...)
	return nil
}

func (e *execution) render(value json.RawMessage) (content []Content, err error) {
	if e.tool.Render == nil {
		return []Content{Text(string(value))}, nil
	}
	err = contain(func() error {
		content = copiedContent(e.tool.Render(bytes.Clone(e.call.Args), bytes.Clone(value)))
		return checkContent(content...)
	})
	return content, err
}

// amend applies one post-execute step.
func (e *execution) amend(ctx context.Context, p named[Post], r *Result) {
	var a Amendment
	err := contain(func() (err error) {
		a, err = p.f(ctx, e.call.frozen(), r.frozen())
		return err
	})
	if err == nil {
		err = e.refuse(a, *r)
	}
	if err == nil {
		err = e.apply(a, p.name, r)
	}
	switch {
	case err == nil:
		r.Meta.Context = append(r.Meta.Context, copiedContent(a.Context)...)
	case r.Error == nil:
		block(r, p.name, &Error{Code: ToolFailed, Message: fmt.Sprintf("the post-execute step %s failed: %v", p.name, err)})
	default:
		e.complain("post-execute step failed", p.name, err)
	}
}

// refuse says why an amendment cannot be applied to r.
func (e *execution) refuse(a Amendment, r Result) error {
	switch {
	case a.Value != nil && a.Content != nil:
		return errors.New("it replaced both value and content")
	case a.Value != nil && r.Error != nil:
		return errors.New("it gave a value to a failed call")
	case a.Content != nil && r.Meta.DeniedBy != nil && r.Meta.DeniedBy.Stage != StagePost:
		return errors.New("it replaced the content of a refused call")
	}
	return checkContent(append(slices.Clone(a.Content), a.Context...)...)
}

func (e *execution) apply(a Amendment, rule string, r *Result) error {
	switch {
	case a.Block != "" && r.Error != nil:
		r.Meta.Context = append(r.Meta.Context, Text(fmt.Sprintf("blocked by %s: %s", rule, a.Block)))
	case a.Block != "":
		block(r, rule, &Error{Code: BlockedByPost, Message: fmt.Sprintf("blocked by %s: %s", rule, a.Block)})
	case a.Value != nil:
		return e.replace(bytes.Clone(a.Value), r)
	case a.Content != nil:
		r.Content = copiedContent(a.Content)
	}
	return nil
}

// replace gives a successful result another value.
func (e *execution) replace(value json.RawMessage, r *Result) error {
	if err := e.tool.value(value); err != nil {
		return err
	}
	if err := e.show(r, value); err != nil {
		return err
	}
	return nil
}

// block makes a success a failure.
func block(r *Result, rule string, err *Error) {
	r.fail(err)
	r.Meta.DeniedBy = &DeniedBy{Stage: StagePost, Rule: rule}
}
