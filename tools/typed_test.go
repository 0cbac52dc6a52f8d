package tools_test

import (
	"context"
	"strings"
	"testing"

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
