package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

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

// maxRefs is how many references in a row are followed.
const maxRefs = 16

// resolved follows the references of a schema that says nothing else about
// members and items.
func resolved(s *jsonschema.Schema) *jsonschema.Schema {
	for range maxRefs {
		if s.Ref == nil || s.Properties != nil || s.Items2020 != nil {
			break
		}
		s = s.Ref
	}
	return s
}

// takesObjects reports whether the schema does not rule out objects at first
// sight.
func takesObjects(s *jsonschema.Schema) bool {
	s = resolved(s)
	if s.Bool != nil {
		return *s.Bool
	}
	return s.Types == nil || s.Types.IsEmpty() || slices.Contains(s.Types.ToStrings(), "object")
}

// dropNulls removes members, at any depth, that are null where null is not a
// value but stands for an absent optional one.
func dropNulls(s *jsonschema.Schema, v any) (dropped bool) {
	s = resolved(s)
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			property := s.Properties[name]
			switch {
			case property == nil:
			case value != nil:
				dropped = dropNulls(property, value) || dropped
			case !slices.Contains(s.Required, name) && property.Validate(nil) != nil:
				delete(v, name)
				dropped = true
			}
		}
	case []any:
		if s.Items2020 == nil {
			return false
		}
		for _, item := range v {
			dropped = dropNulls(s.Items2020, item) || dropped
		}
	}
	return dropped
}

// propertyNames lists the properties of the schema at a place in raw, in their
// order there. A place that cannot be found has none.
func propertyNames(raw json.RawMessage, location string) []string {
	_, pointer, _ := strings.Cut(location, "#")
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return nil
	}
	for _, step := range strings.Split(pointer, "/")[1:] {
		raw = member(raw, pointerStep.Replace(step))
	}
	return keys(member(raw, "properties"))
}

var pointerStep = strings.NewReplacer("~1", "/", "~0", "~")

// member of an object or a list, nil if it has none of that name.
func member(raw json.RawMessage, name string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil {
		return object[name]
	}
	var list []json.RawMessage
	i, err := strconv.Atoi(name)
	if err != nil || json.Unmarshal(raw, &list) != nil || i < 0 || i >= len(list) {
		return nil
	}
	return list[i]
}

// keys of an object in their order.
func keys(object json.RawMessage) (names []string) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		var skipped json.RawMessage
		if err != nil || dec.Decode(&skipped) != nil {
			return names
		}
		names = append(names, fmt.Sprint(name))
	}
	return names
}
