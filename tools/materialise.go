package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// compiled is a tool with its schemas ready for use.
type compiled struct {
	Tool
	input, output *jsonschema.Schema // output may be nil
	order         map[string]int     // of the input's properties
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
	var err error
	if c.input, err = compileSchema(t.Input); err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	if c.order, err = propertyOrder(t.Input); err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	if t.Output != nil {
		if c.output, err = compileSchema(t.Output); err != nil {
			return nil, fmt.Errorf("output schema: %w", err)
		}
	}
	return c, nil
}

func compileSchema(raw json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	const url = "dsh:tool"
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

// noLoader keeps a schema from naming files or addresses to be read.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a tool's schema may not refer to %s", url)
}

// propertyOrder returns the position of each top-level property.
func propertyOrder(schema json.RawMessage) (map[string]int, error) {
	var top struct {
		Properties json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(schema, &top); err != nil {
		return nil, err
	}
	order := map[string]int{}
	if len(top.Properties) == 0 {
		return order, nil
	}
	dec := json.NewDecoder(bytes.NewReader(top.Properties))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		order[fmt.Sprint(name)] = len(order)
		var skipped json.RawMessage
		if err := dec.Decode(&skipped); err != nil {
			return nil, err
		}
	}
	return order, nil
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
	if c.dropNulls(members) {
		if raw, err = json.Marshal(members); err != nil {
			return nil, &Error{Code: InvalidArgs, Message: err.Error()}
		}
	}
	if err := c.input.Validate(doc); err != nil {
		return nil, &Error{Code: InvalidArgs, Message: strings.Join(c.violations(err), "; ")}
	}
	return raw, nil
}

// dropNulls removes members that are null where null is not a value but stands
// for an absent optional argument.
func (c *compiled) dropNulls(members map[string]any) (dropped bool) {
	for name, value := range members {
		property := c.input.Properties[name]
		if value != nil || property == nil || slices.Contains(c.input.Required, name) || property.Validate(nil) == nil {
			continue
		}
		delete(members, name)
		dropped = true
	}
	return dropped
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

// violation is one thing wrong with the arguments.
type violation struct {
	rank int
	text string
}

// violations lists what is wrong, in the order of the schema's properties.
func (c *compiled) violations(err error) []string {
	var top *jsonschema.ValidationError
	if !errors.As(err, &top) {
		return []string{err.Error()}
	}
	var list []violation
	c.collect(top, &list)
	slices.SortStableFunc(list, func(a, b violation) int { return a.rank - b.rank })
	var texts []string
	for _, v := range list {
		texts = append(texts, v.text)
	}
	return slices.Compact(texts)
}

func (c *compiled) collect(e *jsonschema.ValidationError, list *[]violation) {
	for _, cause := range e.Causes {
		c.collect(cause, list)
	}
	if len(e.Causes) > 0 {
		return
	}
	at := strings.Join(e.InstanceLocation, ".")
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			*list = append(*list, violation{c.rank(e, name), fmt.Sprintf("%s is required", joined(at, name))})
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			*list = append(*list, violation{len(c.order), c.unknown(at, name)})
		}
	default:
		*list = append(*list, violation{c.rank(e, ""), strings.TrimSpace(at + " " + strings.TrimSpace(describe(e)))})
	}
}

// rank of a violation is the position of the top-level property it is in.
func (c *compiled) rank(e *jsonschema.ValidationError, name string) int {
	if len(e.InstanceLocation) > 0 {
		name = e.InstanceLocation[0]
	}
	return c.order[name]
}

func (c *compiled) unknown(at, name string) string {
	if at == "" && !c.Confined && (name == "sandbox_permissions" || name == "justification") {
		return fmt.Sprintf("%s cannot be used: the tool %s is not confined by the sandbox, so there is nothing to widen", name, c.Name)
	}
	text := fmt.Sprintf("unknown argument %q", joined(at, name))
	if at != "" {
		return text
	}
	if known := nearest(name, c.order); known != "" {
		return text + fmt.Sprintf("; did you mean %q?", known)
	}
	return text
}

func joined(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// describe words a leaf of the validator's findings without its location.
func describe(e *jsonschema.ValidationError) string {
	leaf := *e
	leaf.Causes = nil
	text := leaf.Error()
	if _, rest, ok := strings.Cut(text, "': "); ok {
		return rest
	}
	return text
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
		return &Error{Code: InvalidToolOutput, Message: "the tool returned a value that its schema refuses: " + strings.Join(c.violations(err), "; ")}
	}
	return nil
}
