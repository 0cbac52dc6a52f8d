package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
)

// echoing is a registry with a tool that returns its arguments.
func echoing(input string) *tools.Registry {
	r := tools.NewRegistry(nil)
	r.Add(tools.Tool{
		Name: "echo", Description: "returns its arguments", Input: json.RawMessage(input),
		Handle: func(_ context.Context, call *tools.Call) (json.RawMessage, error) { return call.Args, nil },
	})
	return r
}

const file = `{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"}},"required":["path"],"additionalProperties":false}`

func TestArgumentsBySchemasOfEveryForm(t *testing.T) {
	for _, c := range []struct{ name, schema, args, value, refusal string }{
		{"a schema that takes anything", `true`, `{"a":1}`, `{"a":1}`, ""},
		{"a schema without a type", `{}`, `{"a":1}`, `{"a":1}`, ""},
		{"null stands for an absent member behind a reference", `{"$ref":"#/$defs/f","$defs":{"f":` + file + `}}`, `{"path":"x","n":null}`, `{"path":"x"}`, ""},
		{"null stands for an absent member of a member", `{"type":"object","properties":{"f":` + file + `}}`, `{"f":{"path":"x","n":null}}`, `{"f":{"path":"x"}}`, ""},
		{"null stands for an absent member of an item", `{"type":"object","properties":{"l":{"items":` + file + `}}}`, `{"l":[{"path":"x","n":null}]}`, `{"l":[{"path":"x"}]}`, ""},
		{"null for a required member of a member is refused", `{"type":"object","properties":{"f":` + file + `}}`, `{"f":{"path":null}}`, "", "f.path got null, want string"},
		{"what is known is named behind a reference, in the schema's order", `{"$ref":"#/$defs/f","$defs":{"f":` + file + `}}`, `{"pth":"x","n":"y"}`, "", `path is required; n got string, want integer; unknown argument "pth"; did you mean "path"?`},
		{"what is known is named at any depth", `{"type":"object","properties":{"a/b":{"properties":{"c":` + file + `}}}}`, `{"a/b":{"c":{"path":"x","m":1}}}`, "", `unknown argument "a/b.c.m"; did you mean "a/b.c.n"?`},
		{"what is known is named in items", `{"type":"object","properties":{"l":{"items":` + file + `}}}`, `{"l":[{"path":"x","pathh":1}]}`, "", `unknown argument "l.0.pathh"; did you mean "l.0.path"?`},
		{"a member that no schema evaluates is unknown", `{"type":"object","unevaluatedProperties":false}`, `{"x":1}`, "", `unknown argument "x"`},
		{"a member by its pattern", `{"type":"object","patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false}`, `{"xa":1,"xb":"s"}`, "", "xb got string, want integer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := echoing(c.schema).Call(t.Context(), tools.Request{Tool: "echo", Args: json.RawMessage(c.args)})
			switch {
			case c.refusal == "":
				if string(got.Value) != c.value {
					t.Errorf("got %s, %v; want %s", got.Value, got.Error, c.value)
				}
			case got.Error == nil || got.Error.Code != tools.InvalidArgs || got.Error.Message != c.refusal:
				t.Errorf("got %v, want INVALID_ARGS: %s", got.Error, c.refusal)
			}
		})
	}
}

func TestASchemaThatTakesNoObjectIsAProgrammersError(t *testing.T) {
	for _, schema := range []string{`false`, `{"type":"string"}`, `{"type":["null","array"]}`, `{"$ref":"#/$defs/n","$defs":{"n":{"type":"integer"}}}`} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was accepted", schema)
				}
			}()
			echoing(schema)
		}()
	}
}

func TestARefusalIsShortWhateverTheArgumentsAre(t *testing.T) {
	r := newRoad(t, policy.Never, nil)
	tools.Add(r.Registry, tools.Tool{Name: "sum", Description: "adds"},
		func(_ context.Context, _ *tools.Call, in struct {
			List []int `json:"list"`
		}) (int, error) {
			return 0, nil
		})
	long := strings.Repeat("ü", 1<<20)
	for name, q := range map[string]tools.Request{
		"the name of a tool":   {Tool: long},
		"the name of a member": {Tool: "delete_path", Args: json.RawMessage(`{"` + long + `":1}`)},
		"a member given twice": {Tool: "delete_path", Args: json.RawMessage(`{"` + long + `":1,"` + long + `":1}`)},
		"many wrong items":     {Tool: "sum", Args: json.RawMessage(`{"list":["a"` + strings.Repeat(`,"a"`, 1<<16) + `]}`)},
		"a long number":        {Tool: "sum", Args: json.RawMessage(`{"list":[1` + strings.Repeat("0", 300) + `]}`)},
	} {
		got := r.Call(t.Context(), q)
		if got.Error == nil || len(got.Error.Message) > 16<<10 {
			t.Errorf("%s: got %.200v of %d bytes", name, got.Error, len(got.Error.Message))
		}
	}
}

func TestWhatATypedBodyCannotTakeIsRefusedBeforeAnyoneIsAsked(t *testing.T) {
	r := newRoad(t, policy.Ask, nil)
	r.Listen("asks", func(context.Context, tools.Call, func() tools.Verdict) tools.Verdict {
		return tools.Verdict{Reason: "sure?"}
	})
	tools.Add(r.Registry, tools.Tool{Name: "wait", Description: "waits"},
		func(_ context.Context, _ *tools.Call, in struct {
			N     int64 `json:"n"`
			Small int8  `json:"small,omitempty"`
		}) (int64, error) {
			return in.N, nil
		})
	for args, want := range map[string]string{
		`{"n":9223372036854775808}`: "n got number 9223372036854775808, want int64",
		`{"n":1.0}`:                 "n got number 1.0, want int64",
	} {
		got := r.Call(t.Context(), tools.Request{Tool: "wait", Args: json.RawMessage(args), Session: r.session})
		if got.Error == nil || got.Error.Code != tools.InvalidArgs || got.Error.Message != want || got.Meta.Started {
			t.Errorf("%s gave %v, started %t; want INVALID_ARGS: %s", args, got.Error, got.Meta.Started, want)
		}
	}
}
