package tools

import (
	"encoding/json"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"
)

// A nil slice is an empty list for Go and null in JSON. Programs expect a list
// where one is declared, so typed tools never give null for one: their schemas
// do not allow it, and their values have [] instead.

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

var marshaler = reflect.TypeFor[json.Marshaler]()

// fillLists replaces the nil slices that v points to, at any depth, by empty
// ones. Types that encode themselves, and bytes, stay as they are.
func fillLists(v reflect.Value) {
	if v.Type().Implements(marshaler) || v.CanAddr() && v.Addr().Type().Implements(marshaler) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && (v.Kind() == reflect.Pointer || v.Elem().Kind() == reflect.Pointer) {
			fillLists(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() || v.Type().Field(i).Anonymous {
				fillLists(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		if v.IsNil() && v.CanSet() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			fillLists(v.Index(i))
		}
	}
}
