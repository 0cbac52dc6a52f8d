package main

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/dsh-run/dsh/session"
)

// exportIDs are the members that say where an event belongs.
type exportIDs struct {
	ID       string `json:"id"`
	CallID   string `json:"call_id"`
	ParentID string `json:"parent_id"`
	JobID    string `json:"job_id"`
}

// event puts an event where it belongs.
func (x *export) event(e session.Event) bool {
	x.events++
	var ids exportIDs
	data, err := recordOf(e)
	if err == nil {
		err = json.Unmarshal(e.Data, &ids)
	}
	if err != nil || !x.place(e.Type, ids, data) {
		x.rest(e, ids.CallID)
	}
	return true
}

// recordOf returns an event's data with its number and time.
func recordOf(e session.Event) (record, error) {
	var data record
	if err := json.Unmarshal(e.Data, &data); err != nil || data == nil {
		return nil, &json.UnmarshalTypeError{Value: string(e.Data)}
	}
	data["seq"] = json.RawMessage(strconv.FormatUint(e.Seq, 10))
	data["time"] = json.RawMessage(strconv.Quote(exportTime(e.Time)))
	return data, nil
}

func exportTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// rest keeps an event that has no place of its own.
func (x *export) rest(e session.Event, call string) {
	list := &x.other
	if call != "" {
		list = &x.call(call).Other
	}
	*list = append(*list, exportEvent{Seq: e.Seq, Time: exportTime(e.Time), Type: e.Type, Data: e.Data})
}

// place reports whether an event has a place of its own that is free.
func (x *export) place(t session.Type, ids exportIDs, data record) bool {
	switch t {
	case session.Start:
		return put(&x.session, data)
	case session.SandboxMode, session.ApprovalPolicy, session.PermissionPreset:
		data["type"] = json.RawMessage(strconv.Quote(string(t)))
		x.permissions = append(x.permissions, data)
		return true
	case session.ExecStart, session.ExecEnd:
		w := x.work(&x.execs, "exec ", ids.ID)
		return put(choose(t == session.ExecStart, &w.Start, &w.End), data)
	case session.JobStart, session.JobEnd:
		w := x.work(&x.jobs, "job ", ids.JobID)
		return put(choose(t == session.JobStart, &w.Start, &w.End), data)
	}
	return ids.CallID != "" && x.placeInCall(t, ids, data)
}

func (x *export) placeInCall(t session.Type, ids exportIDs, data record) bool {
	switch t {
	case session.ToolCall:
		return x.newCall(ids, data)
	case session.ToolStarted:
		return put(&x.call(ids.CallID).Started, data)
	case session.ToolResult:
		return put(&x.call(ids.CallID).Result, data)
	case session.ApprovalAsked:
		return put(&x.question(ids).Asked, data)
	case session.ApprovalDecided:
		return put(&x.question(ids).Decided, data)
	case session.ApprovalLate:
		q := x.question(ids)
		q.Late = append(q.Late, data)
		return true
	case session.ProgramStart:
		return put(&x.program(ids.CallID).Start, data)
	case session.ProgramEnd:
		return put(&x.program(ids.CallID).End, data)
	case session.ProgramLog:
		c := x.call(ids.CallID)
		c.Printed = append(c.Printed, data)
		return true
	}
	return false
}

// put fills a place that is free.
func put(place *record, data record) bool {
	if *place != nil {
		return false
	}
	*place = data
	return true
}

func choose(first bool, a, b *record) *record {
	if first {
		return a
	}
	return b
}

// newCall adds a call, or fills one of which only later events were seen.
func (x *export) newCall(ids exportIDs, data record) bool {
	if x.byCall[ids.CallID] == nil {
		x.addCall(ids.CallID, ids.ParentID)
	}
	return put(&x.byCall[ids.CallID].Call, data)
}

func (x *export) addCall(id, parent string) *exportCall {
	c := &exportCall{ID: id}
	list := &x.calls
	if p := x.byCall[parent]; p != nil {
		list = &p.calls
	}
	*list = append(*list, c)
	x.byCall[id] = c
	return c
}

// call returns the call with that id, one whose start is lost where it is not
// in the log.
func (x *export) call(id string) *exportCall {
	if c := x.byCall[id]; c != nil {
		return c
	}
	return x.addCall(id, parentID(id))
}

func (x *export) question(ids exportIDs) *exportQuestion {
	q := x.byQuestion[ids.ID]
	if q == nil {
		q = &exportQuestion{ID: ids.ID}
		x.byQuestion[ids.ID] = q
		c := x.call(ids.CallID)
		c.Approvals = append(c.Approvals, q)
	}
	return q
}

func (x *export) program(call string) *exportProgram {
	c := x.call(call)
	if c.Program == nil {
		c.Program = &exportProgram{}
	}
	return c.Program
}

func (x *export) work(list *[]*exportWork, kind, id string) *exportWork {
	w := x.byWork[kind+id]
	if w == nil {
		w = &exportWork{ID: id}
		x.byWork[kind+id] = w
		*list = append(*list, w)
	}
	return w
}
