package ptc

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// declarer writes one JSON Schema as TypeScript. What has no counterpart
// becomes JsonValue with a comment.
type declarer struct {
	prefix string
	schema any
	names  map[string]string // by reference: the type that stands for it
	types  map[string]string // by name: its declaration
}

const anything = "JsonValue"

// maxNesting bounds the text for schemas that are nested without end.
const maxNesting = 24

func newDeclarer(tool, part string, schema json.RawMessage) *declarer {
	d := &declarer{prefix: typeName(tool) + part, names: map[string]string{}, types: map[string]string{}}
	if json.Unmarshal(schema, &d.schema) != nil {
		d.schema = true
	}
	return d
}

// root is the type of the whole schema.
func (d *declarer) root() string { return d.typeOf(d.schema, 0) }

// named are the declarations of the types that root refers to.
func (d *declarer) named() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(d.types)) {
		b.WriteString("type " + name + " = " + d.types[name] + ";\n")
	}
	return b.String()
}

func (d *declarer) typeOf(schema any, depth int) string {
	s, ok := schema.(map[string]any)
	switch {
	case schema == false:
		return "never"
	case !ok || len(s) == 0:
		return anything
	case depth > maxNesting:
		return anything + " /* nested too deeply to show */"
	}
	parts := d.parts(s, depth)
	if len(parts) == 0 {
		return d.unconstrained(s)
	}
	return intersection(parts)
}

// parts are the types that a value must have all of.
func (d *declarer) parts(s map[string]any, depth int) (parts []string) {
	add := func(t string) {
		if t != "" && t != anything && !slices.Contains(parts, t) {
			parts = append(parts, t)
		}
	}
	if ref, ok := s["$ref"].(string); ok {
		add(d.reference(ref, depth))
	}
	if value, ok := s["const"]; ok {
		add(d.literal(value))
	} else if values, ok := s["enum"].([]any); ok {
		add(d.union(values, d.literal))
	} else {
		add(d.base(s, depth))
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		if list, ok := s[word].([]any); ok {
			add(d.union(list, func(v any) string { return d.typeOf(v, depth+1) }))
		}
	}
	if list, ok := s["allOf"].([]any); ok {
		for _, v := range list {
			add(d.typeOf(v, depth+1))
		}
	}
	return parts
}

// described are the words that say nothing about the type of a value.
var described = []string{"description", "title", "default", "examples", "$schema", "$id", "$defs", "definitions", "$comment", "deprecated", "readOnly", "writeOnly"}

func (d *declarer) unconstrained(s map[string]any) string {
	var words []string
	for _, word := range slices.Sorted(maps.Keys(s)) {
		if !slices.Contains(described, word) {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return anything
	}
	return anything + " /* see the schema: " + comment(strings.Join(words, ", ")) + " */"
}

// reference is the name of the type that ref points to in this schema.
func (d *declarer) reference(ref string, depth int) string {
	if name, ok := d.names[ref]; ok {
		return name
	}
	target, ok := d.lookup(ref)
	if !ok {
		return anything + " /* " + comment(ref) + " cannot be resolved */"
	}
	name := d.prefix + typeName(ref[strings.LastIndexByte(ref, '/')+1:])
	for _, taken := d.types[name]; taken; _, taken = d.types[name] {
		name += "_"
	}
	d.names[ref], d.types[name] = name, ""
	// A type that is an alias of itself would not compile.
	if d.types[name] = d.typeOf(target, depth+1); d.types[name] == name {
		d.types[name] = anything
	}
	return name
}

// lookup follows a JSON pointer from the root of the schema.
func (d *declarer) lookup(ref string) (any, bool) {
	at := d.schema
	if ref == "#" {
		return at, true
	}
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	for _, step := range strings.Split(path, "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch node := at.(type) {
		case map[string]any:
			if at, ok = node[step]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(node) {
				return nil, false
			}
			at = node[i]
		default:
			return nil, false
		}
	}
	return at, true
}

func (d *declarer) union(values []any, typeOf func(any) string) string {
	var types []string
	for _, v := range values {
		t := typeOf(v)
		if t == anything {
			return anything
		}
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	if len(types) == 0 {
		return "never"
	}
	return strings.Join(types, " | ")
}

func intersection(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	for i, p := range parts {
		parts[i] = grouped(p)
	}
	return strings.Join(parts, " & ")
}

// grouped is a type that an operator may follow.
func grouped(t string) string {
	if strings.ContainsAny(t, "|&") {
		return "(" + t + ")"
	}
	return t
}

// base is the type that the words for one kind of value say.
func (d *declarer) base(s map[string]any, depth int) string {
	switch t := s["type"].(type) {
	case string:
		return d.kind(t, s, depth)
	case []any:
		return d.union(t, func(v any) string {
			name, _ := v.(string)
			return d.kind(name, s, depth)
		})
	}
	switch {
	case s["properties"] != nil || s["required"] != nil || s["additionalProperties"] != nil || s["patternProperties"] != nil:
		return d.object(s, depth)
	case s["items"] != nil || s["prefixItems"] != nil:
		return d.array(s, depth)
	default:
		return ""
	}
}

func (d *declarer) kind(name string, s map[string]any, depth int) string {
	switch name {
	case "string", "boolean", "null":
		return name
	case "number", "integer":
		return "number"
	case "array":
		return d.array(s, depth)
	case "object":
		return d.object(s, depth)
	default:
		return anything + " /* unknown type " + comment(name) + " */"
	}
}

func (d *declarer) array(s map[string]any, depth int) string {
	items, bounded := s["items"]
	first, ok := s["prefixItems"].([]any)
	if !ok {
		if !bounded {
			return anything + "[]"
		}
		return grouped(d.typeOf(items, depth+1)) + "[]"
	}
	least, _ := s["minItems"].(float64)
	var parts []string
	for i, item := range first {
		t := d.typeOf(item, depth+1)
		if float64(i) >= least {
			t = grouped(t) + "?"
		}
		parts = append(parts, t)
	}
	switch {
	case !bounded:
		parts = append(parts, "..."+anything+"[]")
	case items != false:
		parts = append(parts, "..."+grouped(d.typeOf(items, depth+1))+"[]")
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func (d *declarer) object(s map[string]any, depth int) string {
	properties, _ := s["properties"].(map[string]any)
	required := map[string]bool{}
	if list, ok := s["required"].([]any); ok {
		for _, name := range list {
			if text, ok := name.(string); ok {
				required[text] = true
			}
		}
	}
	names := slices.Collect(maps.Keys(properties))
	for name := range required {
		if _, ok := properties[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	// Needed members first: that is the order in which they are read.
	slices.SortStableFunc(names, func(a, b string) int { return order(required[b]) - order(required[a]) })
	var members, types []string
	for _, name := range names {
		t := anything
		if p, ok := properties[name]; ok {
			t = d.typeOf(p, depth+1)
		}
		mark := ""
		if !required[name] {
			mark = "?"
		}
		types = append(types, t)
		members = append(members, propertyName(name)+mark+": "+t+note(properties[name]))
	}
	if rest := d.rest(s, types, len(required) < len(names), depth); rest != "" {
		members = append(members, rest)
	}
	if len(members) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(members, "; ") + " }"
}

func order(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rest is the index signature for members that are not listed. An index
// signature must admit the listed members too.
func (d *declarer) rest(s map[string]any, listed []string, optional bool, depth int) string {
	var types []string
	add := func(schema any) {
		if t := d.typeOf(schema, depth+1); !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	patterns, _ := s["patternProperties"].(map[string]any)
	for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
		add(patterns[pattern])
	}
	more, said := s["additionalProperties"]
	switch {
	case said && more != false:
		add(more)
	case !said && len(listed) == 0 && len(patterns) == 0:
		add(true)
	}
	if len(types) == 0 {
		return ""
	}
	for _, t := range listed {
		if !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	if optional {
		types = append(types, "undefined")
	}
	if slices.Contains(types, anything) && !optional {
		types = []string{anything}
	}
	return "[key: string]: " + strings.Join(types, " | ")
}

// note is the description of a member as a comment.
func note(schema any) string {
	s, _ := schema.(map[string]any)
	text, _ := s["description"].(string)
	if text == "" {
		return ""
	}
	return " /* " + comment(text) + " */"
}

func (d *declarer) literal(value any) string {
	switch v := value.(type) {
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			items[i] = d.literal(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case map[string]any:
		var members []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			members = append(members, propertyName(name)+": "+d.literal(v[name]))
		}
		return "{ " + strings.Join(members, "; ") + " }"
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprintf("ptc: a decoded JSON value cannot be encoded: %v", err))
		}
		return string(raw)
	}
}

var identifier = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$]*$`)

// propertyName is a member's name as it is written in an object type.
func propertyName(name string) string {
	if identifier.MatchString(name) {
		return name
	}
	raw, err := json.Marshal(name)
	if err != nil {
		panic(fmt.Sprintf("ptc: a string cannot be encoded: %v", err))
	}
	return string(raw)
}

var separators = regexp.MustCompile(`[^A-Za-z0-9]+`)

// typeName is name in the form of a type's name.
func typeName(name string) string {
	var b strings.Builder
	for _, word := range separators.Split(name, -1) {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	if b.Len() == 0 || b.String()[0] <= '9' {
		return "T" + b.String()
	}
	return b.String()
}

// optionalMark lets a call leave out arguments that are all optional.
func optionalMark(input json.RawMessage) string {
	var s struct {
		Required []string `json:"required"`
	}
	if json.Unmarshal(input, &s) == nil && len(s.Required) == 0 {
		return "?"
	}
	return ""
}
