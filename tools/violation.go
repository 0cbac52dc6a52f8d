package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxViolations is how many a message has, maxViolation how many bytes of one:
// a model can send arguments of which every byte is wrong.
const maxViolations, maxViolation = 20, 400

// violation is one thing wrong with a value.
type violation struct {
	rank int
	text string
}

// violations lists what is wrong, in the order of the properties of s, whose
// text is raw.
func (c *compiled) violations(s *jsonschema.Schema, raw json.RawMessage, err error) string {
	var top *jsonschema.ValidationError
	if !errors.As(err, &top) {
		return clipped(err.Error())
	}
	v := violations{tool: c, schema: raw, order: propertyNames(raw, resolved(s).Location)}
	v.collect(top)
	slices.SortStableFunc(v.list, func(a, b violation) int { return a.rank - b.rank })
	return v.text()
}

// violations are what one validation found.
type violations struct {
	tool   *compiled
	schema json.RawMessage
	order  []string // of the properties at the top
	list   []violation
}

func (v *violations) text() string {
	var texts []string
	for _, one := range v.list {
		texts = append(texts, one.text)
	}
	texts = slices.Compact(texts)
	if more := len(texts) - maxViolations; more > 0 {
		texts = append(texts[:maxViolations], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

func (v *violations) collect(e *jsonschema.ValidationError) {
	for _, cause := range e.Causes {
		v.collect(cause)
	}
	if len(e.Causes) > 0 {
		return
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			v.add(e.InstanceLocation, name, fmt.Sprintf("%s is required", place(e.InstanceLocation, name)))
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			v.add(e.InstanceLocation, name, v.unknown(e, e.InstanceLocation, name))
		}
	case *kind.FalseSchema:
		v.forbidden(e)
	default:
		v.add(e.InstanceLocation, "", strings.TrimSpace(place(e.InstanceLocation)+" "+strings.TrimSpace(describe(e))))
	}
}

// forbidden is about a value where the schema allows none.
func (v *violations) forbidden(e *jsonschema.ValidationError) {
	last := len(e.InstanceLocation) - 1
	if last < 0 {
		v.add(nil, "", "no value is allowed")
		return
	}
	at, name := e.InstanceLocation[:last], e.InstanceLocation[last]
	v.add(at, name, v.unknown(e, at, name))
}

// add ranks a violation by the top-level property that it is in; unknown ones
// come last.
func (v *violations) add(at []string, name, text string) {
	if len(at) > 0 {
		name = at[0]
	}
	rank := 0
	if name != "" {
		if rank = slices.Index(v.order, name); rank < 0 {
			rank = len(v.order)
		}
	}
	v.list = append(v.list, violation{rank, clipped(text)})
}

// unknown names an argument that there is not, and the one that was meant.
func (v *violations) unknown(e *jsonschema.ValidationError, at []string, name string) string {
	if len(at) == 0 && !v.tool.Confined && (name == "sandbox_permissions" || name == "justification") {
		return fmt.Sprintf("%s cannot be used: the tool %s is not confined by the sandbox, so there is nothing to widen", name, v.tool.Name)
	}
	text := fmt.Sprintf("unknown argument %.100q", place(at, name))
	if known := nearest(name, slices.Values(propertyNames(v.schema, e.SchemaURL))); known != "" {
		text += fmt.Sprintf("; did you mean %q?", place(at, known))
	}
	return text
}

// place of a value in the arguments, its names joined by dots.
func place(at []string, name ...string) string {
	return strings.Join(slices.Concat(at, name), ".")
}

// describe words a leaf of the validator's findings without its location.
func describe(e *jsonschema.ValidationError) string {
	leaf := *e
	leaf.Causes, leaf.InstanceLocation = nil, nil
	text := leaf.Error()
	if _, rest, ok := strings.Cut(text, "': "); ok {
		return rest
	}
	return text
}

// clipped is a text short enough for a message.
func clipped(text string) string {
	if len(text) <= maxViolation {
		return text
	}
	cut := maxViolation
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
