package tools

import (
	"time"

	"github.com/dsh-run/dsh/session"
)

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

// logStarted writes that the body begins, for tools that may change something:
// a call without it that the log leaves open has changed nothing.
func (e *execution) logStarted() error {
	if e.call.Session == nil || e.call.Effect == NoEffect {
		return nil
	}
	_, err := e.call.Session.Log().Append(session.ToolStarted, startedEvent{CallID: e.call.ID})
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
	e.call.Session.sawEnd(e.call.ID, e.call.Tool, e.call.Args, r.code(), r.Meta.Confinement)
	if e.call.ParentID == "" {
		return log.Sync()
	}
	return nil
}

// unlogged is the result of a call that could not be written down.
func (e *execution) unlogged(what string, err error) Result {
	r := Result{Meta: e.meta()}
	r.Meta.DurationMS = time.Since(e.start).Milliseconds()
	r.fail(&Error{Code: LogFailed, Message: what + ": " + err.Error()})
	return r
}
