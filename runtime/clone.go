package runtime

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"
)

// The classes of errors and of views of bytes that are kept in a copy.
var (
	clonedErrors = []string{"Error", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError"}
	clonedViews  = []string{
		"Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array",
		"Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array", "DataView",
	}
)

// structuredClone copies plain data, dates, maps, sets, errors, regular
// expressions and bytes, keeping what is shared or circular.
func (w *world) structuredClone(call goja.FunctionCall) goja.Value {
	c := &cloner{world: w, done: make(map[*goja.Object]*goja.Object)}
	return c.value(call.Argument(0), 0)
}

type cloner struct {
	*world
	done  map[*goja.Object]*goja.Object
	nodes int
}

func (c *cloner) value(v goja.Value, depth int) goja.Value {
	o, ok := v.(*goja.Object)
	if !ok {
		if _, symbol := v.(*goja.Symbol); symbol {
			panic(c.vm.NewTypeError("structuredClone: a symbol cannot be cloned"))
		}
		return v
	}
	if c.nodes++; c.nodes%nodesPerCheck == 0 {
		c.check()
	}
	if copied := c.done[o]; copied != nil {
		return copied
	}
	if depth > maxDecodeDepth {
		panic(c.rangeError("structuredClone: nested too deeply"))
	}
	return c.object(o, depth)
}

func (c *cloner) object(o *goja.Object, depth int) goja.Value {
	class := classOf(o)
	switch class {
	case "Array":
		return c.members(o, c.vm.NewArray(), depth)
	case "Date", "RegExp", "Number", "String", "Boolean":
		return c.rebuilt(class, o)
	case "Map", "Set":
		return c.collection(class, o, depth)
	case "Error":
		return c.failure(o, depth)
	case "Object", "Arguments", "Proxy", "ArrayBuffer", "Bytes":
		if raw, ok := c.bytesOf(o); ok {
			return c.buffer(o, raw)
		}
		return c.members(o, c.vm.NewObject(), depth)
	}
	panic(c.vm.NewTypeError("structuredClone: a %s cannot be cloned", strings.ToLower(class)))
}

func (c *cloner) members(from, to *goja.Object, depth int) goja.Value {
	c.done[from] = to
	if from.ClassName() == "Array" {
		_ = to.Set("length", from.Get("length"))
	}
	for _, key := range from.Keys() {
		c.define(to, key, c.value(from.Get(key), depth+1))
	}
	return to
}

func (c *cloner) define(o *goja.Object, key string, v goja.Value) {
	_ = o.DefineDataProperty(key, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
}

func (c *cloner) rebuilt(class string, o *goja.Object) goja.Value {
	var copied *goja.Object
	switch class {
	case "RegExp":
		copied = c.library().construct(class, o.Get("source"), o.Get("flags"))
	default:
		copied = c.library().construct(class, o.ToNumber())
		if class == "String" {
			copied = c.library().construct(class, c.vm.ToValue(o.String()))
		}
		if class == "Boolean" {
			copied = c.library().construct(class, c.vm.ToValue(o.Export()))
		}
	}
	c.done[o] = copied
	return copied
}

func (c *cloner) collection(class string, o *goja.Object, depth int) goja.Value {
	copied := c.library().construct(class)
	c.done[o] = copied
	var pairs [][2]goja.Value
	c.inspector().forEach(o, func(value, key goja.Value) { pairs = append(pairs, [2]goja.Value{key, value}) })
	for _, pair := range pairs {
		if key := c.value(pair[0], depth+1); class == "Map" {
			c.library().call(class, "set", copied, key, c.value(pair[1], depth+1))
		} else {
			c.library().call(class, "add", copied, key)
		}
	}
	return copied
}

func (c *cloner) failure(o *goja.Object, depth int) goja.Value {
	class := c.member(o, "name")
	if !slices.Contains(clonedErrors, class) {
		class = "Error"
	}
	copied := c.library().construct(class, c.vm.ToValue(c.member(o, "message")))
	c.done[o] = copied
	if cause := o.Get("cause"); cause != nil {
		_ = copied.DefineDataProperty("cause", c.value(cause, depth+1), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	return copied
}

func (c *cloner) buffer(o *goja.Object, raw []byte) goja.Value {
	copied := c.vm.ToValue(c.vm.NewArrayBuffer(append([]byte(nil), raw...))).(*goja.Object)
	if _, isView := o.Get("buffer").(*goja.Object); isView {
		class := c.inspector().constructorName(o)
		if !slices.Contains(clonedViews, class) {
			panic(c.vm.NewTypeError("structuredClone: a %s cannot be cloned", strconv.Quote(class)))
		}
		copied = c.library().construct(class, copied)
	}
	c.done[o] = copied
	return copied
}
