package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

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
