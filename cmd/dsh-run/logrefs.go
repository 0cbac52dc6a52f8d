package main

import (
	"encoding/json"
	"fmt"

	"github.com/dsh-run/dsh/session"
)

// record is the data of an event, member by member.
type record map[string]json.RawMessage

// refMembers are the members of an event's data that name a blob.
var refMembers = map[session.Type][]string{
	session.ToolCall:      {"args_ref"},
	session.ToolResult:    {"value_ref", "content_ref"},
	session.ApprovalAsked: {"preview_ref"},
	session.ProgramStart:  {"program"},
	session.Recovered:     {"torn"},
}

// errorRefs are those of an event's error.
var errorRefs = []string{"details_ref"}

// eachRef calls f for every blob that an event names; err says that a name
// cannot be read.
func eachRef(e session.Event, f func(member string, ref session.Ref, err error)) {
	members := refMembers[e.Type]
	if members == nil {
		return
	}
	var data record
	if err := json.Unmarshal(e.Data, &data); err != nil {
		f("data", session.Ref{}, err)
		return
	}
	data.eachRef(members, f)
	var failure record
	if json.Unmarshal(data["error"], &failure) == nil {
		failure.eachRef(errorRefs, f)
	}
}

func (r record) eachRef(members []string, f func(string, session.Ref, error)) {
	for _, member := range members {
		if raw, ok := r[member]; ok {
			ref, err := readRef(raw)
			f(member, ref, err)
		}
	}
}

func readRef(raw json.RawMessage) (session.Ref, error) {
	var ref session.Ref
	if err := json.Unmarshal(raw, &ref); err != nil {
		return ref, fmt.Errorf("it names no blob: %w", err)
	}
	return ref, nil
}
