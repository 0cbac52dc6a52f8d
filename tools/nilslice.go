package tools

import (
	"encoding"
	"encoding/json"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// A nil slice is an empty list for Go and null in JSON, and so is a nil map.
// Programs expect a list where one is declared, so typed tools never give null
// for one: their schemas do not allow it, and their values have [] and {}
// instead.

// withoutNullLists changes s so that a list is never null.
func withoutNullLists(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" && s.Types[1] == "array" {
		s.Type, s.Types = "array", nil
	}
	withoutNullLists(s.Items)
	withoutNullLists(s.AdditionalProperties)
	for _, property := range s.Properties {
		withoutNullLists(property)
	}
}

// maxFilled is how deep values are filled. Beyond it they are taken for ones
// that hold themselves, which encoding refuses.
const maxFilled = 1000

// fillEmpty replaces the nil slices and maps in v, at any depth, by empty ones.
// What v refers to is copied before it is changed: the body that returned it may
// share it with others. Types that encode themselves, and bytes, stay as they
// are.
func fillEmpty(v reflect.Value, depth int) {
	if depth > maxFilled || !v.CanSet() && v.Kind() != reflect.Struct || encodesItself(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		fillTarget(v, depth)
	case reflect.Struct:
		for i := range v.NumField() {
			fillEmpty(v.Field(i), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fillEmpty(v.Index(i), depth+1)
		}
	case reflect.Slice:
		fillSlice(v, depth)
	case reflect.Map:
		fillMap(v, depth)
	}
}

func fillTarget(v reflect.Value, depth int) {
	if v.IsNil() || encodesItself(v.Elem().Type()) {
		return
	}
	own := copyOf(v.Elem())
	fillEmpty(own, depth+1)
	if v.Kind() == reflect.Pointer {
		own = own.Addr()
	}
	v.Set(own)
}

func fillSlice(v reflect.Value, depth int) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return
	}
	own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(own, v)
	for i := range own.Len() {
		fillEmpty(own.Index(i), depth+1)
	}
	v.Set(own)
}

func fillMap(v reflect.Value, depth int) {
	own := reflect.MakeMapWithSize(v.Type(), v.Len())
	for entries := v.MapRange(); entries.Next(); {
		value := copyOf(entries.Value())
		fillEmpty(value, depth+1)
		own.SetMapIndex(entries.Key(), value)
	}
	v.Set(own)
}

// copyOf is a variable with the value of v.
func copyOf(v reflect.Value) reflect.Value {
	own := reflect.New(v.Type()).Elem()
	own.Set(v)
	return own
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

func encodesItself(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(marshaler) || pointer.Implements(textMarshaler)
}
