package tools_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
)

func TestContentIsAlwaysAListOfBlocks(t *testing.T) {
	for _, c := range []struct {
		name   string
		render []tools.Content
		want   string
	}{
		{"a renderer that shows nothing", nil, `[]`},
		{"an empty text", []tools.Content{tools.Text("")}, `[{"type":"text","text":""}]`},
		{"an empty image", []tools.Content{tools.Image(nil, "image/png")}, `[{"type":"image","data":"","mimeType":"image/png"}]`},
		{"text and an image", []tools.Content{tools.Text("a"), tools.Image([]byte{1}, "image/png")}, `[{"type":"text","text":"a"},{"type":"image","data":"AQ==","mimeType":"image/png"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoad(t, policy.Never, nil)
			r.Add(tools.Tool{
				Name: "shows", Description: "shows", Input: json.RawMessage(`{}`),
				Handle: func(context.Context, *tools.Call) (json.RawMessage, error) { return json.RawMessage(`1`), nil },
				Render: func(_, _ json.RawMessage) []tools.Content { return c.render },
			})
			text, err := json.Marshal(r.Call(t.Context(), tools.Request{Tool: "shows", Session: r.session}))
			if err != nil {
				t.Fatal(err)
			}
			var got struct{ Content json.RawMessage }
			if err := json.Unmarshal(text, &got); err != nil || string(got.Content) != c.want {
				t.Errorf("the content is %s, %v; want %s", got.Content, err, c.want)
			}
		})
	}
}

func TestABlockOfAnotherKindFailsTheCall(t *testing.T) {
	odd := tools.Content{Type: "video"}
	for name, setup := range map[string]func(*tools.Tool, *tools.Registry){
		"from a renderer": func(tool *tools.Tool, _ *tools.Registry) {
			tool.Render = func(_, _ json.RawMessage) []tools.Content { return []tools.Content{odd} }
		},
		"from a body": func(tool *tools.Tool, _ *tools.Registry) {
			tool.Handle = func(_ context.Context, call *tools.Call) (json.RawMessage, error) {
				call.Attach(odd)
				return json.RawMessage(`1`), nil
			}
		},
		"from a post-execute step": func(_ *tools.Tool, r *tools.Registry) {
			r.After("odd", func(context.Context, tools.Call, tools.Result) (tools.Amendment, error) {
				return tools.Amendment{Context: []tools.Content{odd}}, nil
			})
		},
	} {
		r := newRoad(t, policy.Never, nil)
		tool := tools.Tool{
			Name: "shows", Description: "shows", Input: json.RawMessage(`{}`),
			Handle: func(context.Context, *tools.Call) (json.RawMessage, error) { return json.RawMessage(`1`), nil },
		}
		setup(&tool, r.Registry)
		r.Add(tool)
		got := r.Call(t.Context(), tools.Request{Tool: "shows", Session: r.session})
		if got.Error == nil || got.Error.Code != tools.ToolFailed {
			t.Errorf("%s: got %v, want TOOL_FAILED", name, got.Error)
		}
	}
}

func TestAValueThatIsNoTextIsRefused(t *testing.T) {
	r := newRoad(t, policy.Never, nil)
	r.Add(tools.Tool{
		Name: "bytes", Description: "bytes", Input: json.RawMessage(`{}`),
		Handle: func(context.Context, *tools.Call) (json.RawMessage, error) { return json.RawMessage("\"\xff\""), nil },
	})
	got := r.Call(t.Context(), tools.Request{Tool: "bytes", Session: r.session})
	if got.Error == nil || got.Error.Code != tools.InvalidToolOutput {
		t.Errorf("got %v, want INVALID_TOOL_OUTPUT", got.Error)
	}
}

// TestABrokenWideningIsARefusal holds for an error whose text cannot be had,
// such as a nil pointer.
func TestABrokenWideningIsARefusal(t *testing.T) {
	r := newRoad(t, policy.Never, nil)
	r.Add(tools.Tool{
		Name: "widens", Description: "widens", Input: json.RawMessage(`{}`), Confined: true,
		Handle: func(context.Context, *tools.Call) (json.RawMessage, error) { return json.RawMessage(`1`), nil },
		Widen:  func(json.RawMessage) (*policy.Widening, error) { return nil, (*tools.Error)(nil) },
	})
	got := r.Call(t.Context(), tools.Request{Tool: "widens", Session: r.session})
	if got.Error == nil || got.Error.Code != tools.InvalidArgs {
		t.Errorf("got %v, want INVALID_ARGS", got.Error)
	}
}
