package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiled is a tool with its schemas ready for use.
type compiled struct {
	Tool
	input, output *jsonschema.Schema // output may be nil
}

func compile(t Tool) (*compiled, error) {
	switch {
	case !namePattern.MatchString(t.Name):
		return nil, fmt.Errorf("the name must match %s", namePattern)
	case t.Description == "":
		return nil, errors.New("it has no description")
	case t.Handle == nil:
		return nil, errors.New("it has no handler")
	case t.Widen != nil && !t.Confined:
		return nil, errors.New("it can be widened but is not confined")
	}
	c := &compiled{Tool: t}
	c.Input, c.Output = bytes.Clone(t.Input), bytes.Clone(t.Output)
	var err error
	if c.input, err = compileSchema(t.Input); err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	if !takesObjects(c.input) {
		return nil, errors.New("input schema: it takes no object, and arguments are one")
	}
	if t.Output != nil {
		if c.output, err = compileSchema(t.Output); err != nil {
			return nil, fmt.Errorf("output schema: %w", err)
		}
	}
	return c, nil
}

// maxValue bounds the arguments and the value of one call.
const maxValue = 16 << 20

// overlaps asks the classifier; only a clear yes counts.
func (c *compiled) overlaps(args json.RawMessage) (yes bool) {
	if c.Overlaps == nil {
		return false
	}
	defer func() {
		if recover() != nil {
			yes = false
		}
	}()
	return c.Overlaps(bytes.Clone(args))
}

// arguments checks raw against the input schema and returns it in the form
// that the body gets.
func (c *compiled) arguments(raw json.RawMessage) (json.RawMessage, *Error) {
	if len(raw) > maxValue {
		return nil, &Error{Code: ValueTooLarge, Message: fmt.Sprintf("the arguments have %d bytes, at most %d are allowed", len(raw), maxValue)}
	}
	if !utf8.Valid(raw) {
		return nil, &Error{Code: InvalidArgs, Message: "the arguments are not valid UTF-8"}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, &Error{Code: InvalidArgs, Message: "the arguments are not JSON: " + err.Error()}
	}
	if err := lossless(raw); err != nil {
		return nil, &Error{Code: InvalidArgs, Message: "the arguments are not lossless JSON: " + err.Error()}
	}
	members, ok := doc.(map[string]any)
	if !ok {
		return nil, &Error{Code: InvalidArgs, Message: fmt.Sprintf("the arguments must be a JSON object, found %s", jsonKind(doc))}
	}
	if dropNulls(c.input, members) {
		if raw, err = json.Marshal(members); err != nil {
			return nil, &Error{Code: InvalidArgs, Message: err.Error()}
		}
	}
	if err := c.input.Validate(doc); err != nil {
		return nil, &Error{Code: InvalidArgs, Message: c.violations(c.input, c.Input, err)}
	}
	if c.decode != nil {
		if err := contain(func() error { return c.decode(raw) }); err != nil {
			return nil, &Error{Code: InvalidArgs, Message: clipped(err.Error())}
		}
	}
	return raw, nil
}

func jsonKind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	default:
		return "a number"
	}
}

// value checks what a body returned.
func (c *compiled) value(raw json.RawMessage) *Error {
	limit := maxValue
	if c.MaxValue > 0 {
		limit = c.MaxValue
	}
	if len(raw) > limit {
		return &Error{Code: ValueTooLarge, Message: fmt.Sprintf("the value has %d bytes, at most %d are allowed", len(raw), limit)}
	}
	if !utf8.Valid(raw) {
		return &Error{Code: InvalidToolOutput, Message: "the tool returned a value that is not valid UTF-8"}
	}
	if c.output == nil {
		if !json.Valid(raw) {
			return &Error{Code: InvalidToolOutput, Message: "the tool returned something that is not JSON"}
		}
		return nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err == nil {
		err = c.output.Validate(doc)
	}
	if err != nil {
		return &Error{Code: InvalidToolOutput, Message: "the tool returned a value that its schema refuses: " + c.violations(c.output, c.Output, err)}
	}
	return nil
}
