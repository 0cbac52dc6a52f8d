package runtime

import (
	"reflect"
	"strings"

	"github.com/dop251/goja"
)

// The types as which goja exports objects whose class name says only Object.
var (
	typeProxy   = reflect.TypeFor[goja.Proxy]()
	typeMap     = reflect.TypeFor[[][2]any]()
	typeSet     = reflect.TypeFor[[]any]()
	typePromise = reflect.TypeFor[*goja.Promise]()
	typeObject  = reflect.TypeFor[map[string]any]()
	typeBuffer  = reflect.TypeFor[goja.ArrayBuffer]()
)

// classOf names what o is made of, whatever the program did to its
// constructor: Array, Date, Error, Function, Map, Object, Promise, Proxy, Set …
// Bytes is any typed array.
func classOf(o *goja.Object) string {
	class := o.ClassName()
	if class != "Object" {
		return class
	}
	switch t := o.ExportType(); t {
	case typeProxy:
		return "Proxy"
	case typeMap:
		return "Map"
	case typeSet:
		return "Set"
	case typePromise:
		return "Promise"
	case typeBuffer:
		return "ArrayBuffer"
	case typeObject:
	default:
		switch {
		case t == nil:
		case t.Kind() == reflect.Slice:
			return "Bytes"
		case t.Kind() == reflect.Func:
			return "Function"
		}
	}
	return class
}

func isFunctionClass(class string) bool { return strings.HasSuffix(class, "Function") }
