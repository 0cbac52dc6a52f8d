package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/dsh-run/dsh/tools"
)

type listed struct {
	Names []string `json:"names"`
	Rows  []struct {
		Cells []int `json:"cells"`
	} `json:"rows"`
	Next  *listed2 `json:"next,omitempty"`
	Bytes []byte   `json:"bytes"`
	Note  []string `json:"note,omitempty"`
}

type listed2 struct {
	More []string `json:"more"`
}

func TestAListIsNeverNull(t *testing.T) {
	r := tools.NewRegistry(nil)
	var out listed
	tools.Add(r, tools.Tool{Name: "list", Description: "lists"},
		func(context.Context, *tools.Call, struct{}) (listed, error) { return out, nil })
	if schema := string(r.Tools()[0].Output); strings.Contains(schema, `["null","array"]`) && !strings.Contains(schema, `"bytes"`) {
		t.Errorf("the schema lets a list be null: %s", schema)
	}
	out.Rows = append(out.Rows, struct {
		Cells []int `json:"cells"`
	}{})
	out.Next = &listed2{}
	out.Bytes = []byte{1}
	result := r.Call(t.Context(), tools.Request{Tool: "list"})
	if want := `{"names":[],"rows":[{"cells":[]}],"next":{"more":[]},"bytes":"AQ=="}`; string(result.Value) != want {
		t.Errorf("the value is %s, %v; want %s", result.Value, result.Error, want)
	}
}

func TestATypedValueOfAnyKind(t *testing.T) {
	r := tools.NewRegistry(nil)
	tools.Add(r, tools.Tool{Name: "nothing", Description: "no list"}, func(context.Context, *tools.Call, struct{}) ([]string, error) { return nil, nil })
	tools.Add(r, tools.Tool{Name: "any", Description: "any"}, func(context.Context, *tools.Call, struct{}) (any, error) { return nil, nil })
	tools.Add(r, tools.Tool{Name: "map", Description: "map"}, func(context.Context, *tools.Call, struct{}) (map[string]int, error) {
		return map[string]int{"a": 1}, nil
	})
	for tool, want := range map[string]string{"nothing": "[]", "any": "null", "map": `{"a":1}`} {
		if result := r.Call(t.Context(), tools.Request{Tool: tool}); string(result.Value) != want {
			t.Errorf("%s gave %s, %v; want %s", tool, result.Value, result.Error, want)
		}
	}
}

type inner struct {
	Tags []string `json:"tags"`
}

type shelf struct {
	Rows  map[string][]int  `json:"rows"`
	Pairs [2][]int          `json:"pairs"`
	Notes map[string]string `json:"notes"`
	inner
}

func TestWhatIsEmptyIsFilledWhereverItIs(t *testing.T) {
	r := tools.NewRegistry(nil)
	shared := &inner{}
	kept := map[string][]int{"a": nil}
	tools.Add(r, tools.Tool{Name: "any", Description: "any"}, func(context.Context, *tools.Call, struct{}) (any, error) {
		return map[string]any{"one": shared, "two": []any{kept}}, nil
	})
	if got := r.Call(t.Context(), tools.Request{Tool: "any"}); string(got.Value) != `{"one":{"tags":[]},"two":[{"a":[]}]}` {
		t.Errorf("got %s, %v", got.Value, got.Error)
	}
	if shared.Tags != nil || kept["a"] != nil {
		t.Error("what the body keeps was changed")
	}

	type nested map[string]*shelf
	tools.Add(r, tools.Tool{Name: "typed", Description: "typed"}, func(context.Context, *tools.Call, struct{}) (nested, error) {
		return nested{"x": {Rows: map[string][]int{"a": nil}}}, nil
	})
	if got := r.Call(t.Context(), tools.Request{Tool: "typed"}); string(got.Value) != `{"x":{"rows":{"a":[]},"pairs":[[],[]],"notes":{},"tags":[]}}` {
		t.Errorf("got %s, %v", got.Value, got.Error)
	}
}

func TestAValueThatHoldsItselfIsAFailure(t *testing.T) {
	r := tools.NewRegistry(nil)
	type node struct {
		Next any `json:"next"`
	}
	tools.Add(r, tools.Tool{Name: "loop", Description: "loop"}, func(context.Context, *tools.Call, struct{}) (any, error) {
		n := &node{}
		n.Next = n
		return n, nil
	})
	if got := r.Call(t.Context(), tools.Request{Tool: "loop"}); got.Error == nil || got.Error.Code != tools.ToolFailed {
		t.Errorf("got %v, want TOOL_FAILED", got.Error)
	}
}

func TestTypedFieldsOfEveryKindKeepWhatTheyGet(t *testing.T) {
	type kinds struct {
		inner
		Raw   json.RawMessage  `json:"raw,omitempty"`
		Exact json.Number      `json:"exact,omitempty"`
		When  time.Time        `json:"when,omitzero"`
		Int   int64            `json:"int,omitempty"`
		Bytes []byte           `json:"bytes,omitempty"`
		Ptr   *inner           `json:"ptr,omitempty"`
		Map   map[string]inner `json:"map,omitempty"`
	}
	r := tools.NewRegistry(nil)
	tools.Add(r, tools.Tool{Name: "kinds", Description: "kinds"}, func(_ context.Context, _ *tools.Call, in kinds) (kinds, error) { return in, nil })
	for _, args := range []string{
		`{"tags":["a"],"raw":{"n":9007199254740993,"a":[null]},"exact":9007199254740993.5,"int":9223372036854775807}`,
		`{"tags":[],"when":"2026-11-30T08:00:00.000000001Z","bytes":"AAEC"}`,
		`{"tags":[],"ptr":{"tags":["b"]},"map":{"k":{"tags":[]}}}`,
	} {
		if got := r.Call(t.Context(), tools.Request{Tool: "kinds", Args: json.RawMessage(args)}); string(got.Value) != args {
			t.Errorf("%s came back as %s, %v", args, got.Value, got.Error)
		}
	}
}
