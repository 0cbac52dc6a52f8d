package tools

import (
	"encoding/json"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
)

// fold rebuilds a session from its log. The replay knows which calls are open.
func fold(permissions *policy.Session) (*Session, *replay, error) {
	s := &Session{Session: permissions, denials: map[accessKey]string{}}
	r := &replay{session: s, open: map[string]*openCall{}}
	if err := permissions.Log().Replay(r.apply); err != nil {
		return nil, nil, err
	}
	r.settleLong(permissions.Log())
	return s, r, nil
}

// replay rebuilds a session's state from its events.
type replay struct {
	session *Session
	calls   int
	open    map[string]*openCall
	long    []endedCall
}

// openCall is a call without a result.
type openCall struct {
	callEvent
	number  int      // among the calls of the log
	started bool     // its body began, and could change something
	program bool     // its body began to run a program
	below   []string // the calls of its program that started
}

// endedCall is one whose arguments are in a blob, which cannot be read during a
// replay.
type endedCall struct {
	call   *openCall
	result resultEvent
}

func (r *replay) apply(e session.Event) {
	switch e.Type {
	case session.ToolCall:
		r.began(e.Data)
	case session.ToolStarted:
		r.started(e.Data)
	case session.ProgramStart:
		if c := r.open[callID(e.Data)]; c != nil {
			c.program = true
		}
	case session.ToolResult:
		r.ended(e.Data)
	}
}

func (r *replay) began(data json.RawMessage) {
	call := &openCall{}
	if json.Unmarshal(data, &call.callEvent) != nil || call.CallID == "" {
		return
	}
	call.number = r.calls
	r.calls++
	r.open[call.CallID] = call
	r.session.sawRoot(call.CallID)
}

func (r *replay) started(data json.RawMessage) {
	call := r.open[callID(data)]
	if call == nil {
		return
	}
	call.started = true
	for above := r.parent(call); above != nil; above = r.parent(above) {
		above.below = append(above.below, call.CallID+" "+call.Tool)
	}
}

// parent is the open call that made c. Ids that were redacted, or edited, can
// name a later call or c itself; that one did not make it.
func (r *replay) parent(c *openCall) *openCall {
	if p := r.open[c.ParentID]; p != nil && p.number < c.number {
		return p
	}
	return nil
}

func (r *replay) ended(data json.RawMessage) {
	var result resultEvent
	if json.Unmarshal(data, &result) != nil {
		return
	}
	call := r.open[result.CallID]
	if call == nil {
		return
	}
	delete(r.open, result.CallID)
	if call.ArgsRef != nil {
		r.long = append(r.long, endedCall{call, result})
		return
	}
	r.settle(call, call.Args, result)
}

func (r *replay) settle(call *openCall, args json.RawMessage, result resultEvent) {
	var code Code
	if result.Error != nil {
		code = result.Error.Code
	}
	r.session.sawEnd(call.CallID, call.Tool, args, code, result.Confinement)
}

// settleLong reads the arguments that are in blobs. Without its blob a call is
// taken for one that nothing is known about.
func (r *replay) settleLong(log *session.Log) {
	for _, end := range r.long {
		if args, err := log.Get(*end.call.ArgsRef); err == nil {
			r.settle(end.call, args, end.result)
		}
	}
}

// callID is the call that an event belongs to.
func callID(data json.RawMessage) string {
	var e struct {
		CallID string `json:"call_id"`
	}
	if json.Unmarshal(data, &e) != nil {
		return ""
	}
	return e.CallID
}
