package toolstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
)

// shape is a call that a stage may meet.
type shape struct {
	name    string
	session bool
	request tools.Request
}

var shapes = []shape{
	calling("an ordinary call", "echo", `{"path":"a.txt","n":1}`),
	calling("no arguments", "echo", ``),
	calling("an empty object", "echo", `{}`),
	calling("members of every kind", "echo", `{"a":null,"b":[],"c":[[{}]],"d":1e308,"e":-0.5,"f":true,"":"empty name"}`),
	calling("what a stage may look for, of another kind", "echo", `{"path":{"path":[1]},"command":7,"file_path":null,"content":[]}`),
	calling("text of every script", "echo", `{"path":"ü/日本/\u202e/🙈/\u0000/\u2028","команда":"\\\"\n"}`),
	calling("deep nesting", "echo", `{"a":`+strings.Repeat(`[`, 200)+strings.Repeat(`]`, 200)+`}`),
	calling("many members", "echo", manyMembers(500)),
	calling("huge arguments", "echo", `{"content":"`+strings.Repeat("x", 256<<10)+`"}`),
	calling("a tool with an odd name", "a.b-C_1", `{}`),
	calling("a tool that does not exist", "no_such_tool", `{"path":"a.txt"}`),
	calling("arguments that are no object", "echo", `[1]`),
	calling("arguments that are no JSON", "echo", `{"path":`),
	calling("a failure", "fail", `{}`),
	calling("a failure that may be tried again", "fail_again", `{}`),
	calling("a failure without a code", "fail_plainly", `{}`),
	calling("a tool that panics", "break", `{}`),
	calling("a value that its schema refuses", "lie", `{}`),
	calling("a refused call", "echo", `{"refuse":true}`),
	calling("an image", "picture", `{}`),
	inSession(calling("a call in a session", "echo", `{"path":"a.txt"}`)),
	inSession(calling("a failure in a session", "fail", `{}`)),
	by(policy.Caller{Kind: policy.Program, Line: 3, Column: 7}),
	by(policy.Caller{Kind: policy.Client}),
	by(policy.Caller{Kind: "robot"}),
}

func calling(name, tool, args string) shape {
	return shape{name: name, request: tools.Request{ID: "c1", Tool: tool, Args: json.RawMessage(args)}}
}

// inSession makes the call in a session, which gives it its id.
func inSession(s shape) shape {
	s.session, s.request.ID = true, ""
	return s
}

func by(c policy.Caller) shape {
	s := calling(fmt.Sprintf("a call by the caller %q", c.Kind), "echo", `{"path":"a.txt"}`)
	s.request.Caller = c
	return s
}

func manyMembers(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`"m%d":%d`, i, i))
	}
	return "{" + strings.Join(list, ",") + "}"
}

// addTools registers the tools of the shapes.
func addTools(r *tools.Registry) {
	for _, name := range []string{"echo", "a.b-C_1"} {
		add(r, name, func(call *tools.Call) (json.RawMessage, error) { return call.Args, nil })
	}
	add(r, "fail", failing(&tools.Error{Code: "OUT_OF_LUCK", Message: "no luck", Details: json.RawMessage(`{"why":[1]}`)}))
	add(r, "fail_again", failing(&tools.Error{Code: "OUT_OF_LUCK", Message: "no luck yet", Retryable: true}))
	add(r, "fail_plainly", failing(errors.New("no luck")))
	add(r, "break", func(*tools.Call) (json.RawMessage, error) { panic("the tool is broken") })
	add(r, "lie", func(*tools.Call) (json.RawMessage, error) { return json.RawMessage(`"no object"`), nil })
	add(r, "picture", func(call *tools.Call) (json.RawMessage, error) {
		call.Attach(tools.Image([]byte{0x89, 'P', 'N', 'G'}, "image/png"))
		call.Confine(policy.Confinement{Mode: call.Mode, Backend: "none"})
		return json.RawMessage(`{}`), nil
	})
	r.Guard("refuses", func(_ context.Context, call tools.Call) error {
		if string(call.Args) == `{"refuse":true}` {
			return errors.New("refused by the suite")
		}
		return nil
	})
}

func failing(err error) func(*tools.Call) (json.RawMessage, error) {
	return func(*tools.Call) (json.RawMessage, error) { return nil, err }
}

func add(r *tools.Registry, name string, body func(*tools.Call) (json.RawMessage, error)) {
	r.Add(tools.Tool{
		Name: name, Description: "a tool of the suite",
		Input: json.RawMessage(`{"type":"object"}`), Output: json.RawMessage(`{"type":"object"}`),
		Handle: func(_ context.Context, call *tools.Call) (json.RawMessage, error) { return body(call) },
	})
}
