package runtime

import "github.com/dop251/goja"

const (
	// maxString is the longest string, in UTF-16 units, that one call may
	// make: the limit of the JavaScript engine that programs are written for.
	maxString = 1<<29 - 24
	// maxFilled is the most items that one native call may fill in.
	maxFilled = 1 << 26
)

// guardBlowUps replaces the built-in methods that turn a few bytes of source
// into gigabytes in one step, with ones that throw a RangeError as other
// engines do. The originals are out of the program's reach from then on.
func (w *world) guardBlowUps() {
	text := w.pristine.text
	w.guarded(text, "repeat", func(call *goja.FunctionCall) bool { return float64(textLength(call.This))*count(call) > maxString })
	tooLong := func(call *goja.FunctionCall) bool { return count(call) > maxString }
	w.guarded(text, "padStart", tooLong)
	w.guarded(text, "padEnd", tooLong)
	w.guarded(w.pristine.array, "fill", func(call *goja.FunctionCall) bool { return itemCount(call.This) > maxFilled })
	w.guarded(w.pristine.array, "join", func(call *goja.FunctionCall) bool {
		separator := 1
		if s, ok := call.Argument(0).(goja.String); ok {
			separator = s.Length()
		}
		length := itemCount(call.This)
		return length > maxFilled || length*float64(separator) > maxString
	})
}

// count is the first argument as a number. Converting it may have effects, so
// that the original gets the number and does not convert it again.
func count(call *goja.FunctionCall) float64 {
	if len(call.Arguments) == 0 {
		return 0
	}
	n := call.Arguments[0].ToNumber()
	call.Arguments = append([]goja.Value{n}, call.Arguments[1:]...)
	return n.ToFloat()
}

func textLength(v goja.Value) int {
	if s, ok := v.(goja.String); ok {
		return s.Length()
	}
	return 1
}

// itemCount is the length that a native loop over v would have.
func itemCount(v goja.Value) float64 {
	o, ok := v.(*goja.Object)
	if !ok {
		return 0
	}
	length := o.Get("length")
	if length == nil || !goja.IsNumber(length) {
		return 0
	}
	return length.ToFloat()
}

// guarded replaces a method of o by one that throws when tooLarge says so. It
// is a proxy of the original, so that its name and length stay.
func (w *world) guarded(o *goja.Object, name string, tooLarge func(*goja.FunctionCall) bool) {
	method := o.Get(name).(*goja.Object)
	original, _ := goja.AssertFunction(method)
	_ = o.Set(name, w.vm.NewProxy(method, &goja.ProxyTrapConfig{
		Apply: func(_ *goja.Object, this goja.Value, args []goja.Value) goja.Value {
			call := goja.FunctionCall{This: this, Arguments: args}
			if tooLarge(&call) {
				panic(w.rangeError("Invalid length: the result of " + name + " would be too large"))
			}
			v, err := original(call.This, call.Arguments...)
			if err != nil {
				panic(err)
			}
			return v
		},
	}))
}
