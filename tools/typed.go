package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// New returns t with the typed body handle. Input and Output are derived where t
// leaves them empty: from In and Out, whose fields are described by `json` and
// `jsonschema` tags (fields without omitempty or omitzero are required).
// Arguments that do not fit In are INVALID_ARGS before anyone is asked. Numbers
// in a field of type any are float64; a json.Number or json.RawMessage is exact.
// In a value a nil slice is an empty list and a nil map an empty object. A type
// that has no schema is a programmer's error: it panics.
func New[In, Out any](t Tool, handle func(ctx context.Context, call *Call, in In) (Out, error)) Tool {
	if t.Input == nil {
		t.Input = schemaOf[In](t.Name, func(*jsonschema.Schema) {})
	}
	if t.Output == nil {
		t.Output = schemaOf[Out](t.Name, withoutNullLists)
	}
	t.decode = func(args json.RawMessage) error {
		_, err := into[In](args)
		return err
	}
	t.Handle = func(ctx context.Context, call *Call) (json.RawMessage, error) {
		in, err := into[In](call.Args)
		if err != nil {
			return nil, &Error{Code: InvalidArgs, Message: err.Error()}
		}
		out, err := handle(ctx, call, in)
		if err != nil {
			return nil, err
		}
		fillEmpty(reflect.ValueOf(&out).Elem(), 0)
		return marshal(out)
	}
	return t
}

// Add registers New(t, handle).
func Add[In, Out any](r *Registry, t Tool, handle func(ctx context.Context, call *Call, in In) (Out, error)) {
	r.Add(New(t, handle))
}

// Renderer turns a typed renderer into the form that Tool.Render has.
func Renderer[In, Out any](render func(in In, out Out) []Content) func(args, value json.RawMessage) []Content {
	return func(args, value json.RawMessage) []Content {
		var in In
		var out Out
		if err := json.Unmarshal(args, &in); err != nil {
			panic(fmt.Sprintf("render: arguments: %v", err))
		}
		if err := json.Unmarshal(value, &out); err != nil {
			panic(fmt.Sprintf("render: value: %v", err))
		}
		return render(in, out)
	}
}

func schemaOf[T any](tool string, change func(*jsonschema.Schema)) json.RawMessage {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[[]byte]():          {Types: []string{"null", "string"}, ContentEncoding: "base64"},
		reflect.TypeFor[json.RawMessage](): {}, // any value
		reflect.TypeFor[json.Number]():     {Type: "number"},
	}})
	if err != nil {
		panic(fmt.Sprintf("tools: tool %q: no schema for %T: %v", tool, *new(T), err))
	}
	change(s)
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("tools: tool %q: schema of %T: %v", tool, *new(T), err))
	}
	return raw
}

// into decodes arguments, and words what does not fit as a violation is.
func into[In any](args json.RawMessage) (in In, err error) {
	err = json.Unmarshal(args, &in)
	var misfit *json.UnmarshalTypeError
	if errors.As(err, &misfit) {
		err = fmt.Errorf("%s got %s, want %s", misfit.Field, misfit.Value, misfit.Type)
	}
	return in, err
}
