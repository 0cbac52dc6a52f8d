package runtime

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// queueMicrotask runs its callback through a settled promise.
func (w *world) queueMicrotask() goja.Value {
	return w.native("queueMicrotask", func(call goja.FunctionCall) goja.Value {
		callback, ok := goja.AssertFunction(call.Argument(0))
		if !ok {
			panic(w.vm.NewTypeError("queueMicrotask: the argument must be a function"))
		}
		promise, resolve, _ := w.vm.NewPromise()
		if err := resolve(goja.Undefined()); err != nil {
			panic(err)
		}
		run := w.vm.ToValue(func(goja.FunctionCall) goja.Value {
			if _, err := callback(goja.Undefined()); err != nil && w.uncaught == nil {
				if _, thrown := err.(*goja.Exception); !thrown {
					panic(err)
				}
				w.uncaught = w.broke(err)
			}
			return nil
		})
		w.library().call("Promise", "then", w.vm.ToValue(promise), run)
		return nil
	})
}

func (w *world) btoa(call goja.FunctionCall) goja.Value {
	s := call.Argument(0).ToString().(goja.String)
	raw := make([]byte, s.Length())
	for i := range raw {
		c := s.CharAt(i)
		if c > 0xFF {
			panic(w.vm.NewTypeError("btoa: the text has characters beyond Latin-1; encode it with TextEncoder first"))
		}
		raw[i] = byte(c)
	}
	return w.vm.ToValue(base64.StdEncoding.EncodeToString(raw))
}

func (w *world) atob(call goja.FunctionCall) goja.Value {
	text := strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \t\n\f\r", r) {
			return -1
		}
		return r
	}, call.Argument(0).String())
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		panic(w.vm.NewTypeError("atob: the text is not correctly encoded base64"))
	}
	units := make([]uint16, len(raw))
	for i, b := range raw {
		units[i] = uint16(b)
	}
	return goja.StringFromUTF16(units)
}

// bytesOf reads the bytes of an ArrayBuffer, a typed array or a DataView.
func (w *world) bytesOf(v goja.Value) ([]byte, bool) {
	o, ok := v.(*goja.Object)
	if !ok {
		return nil, false
	}
	if buffer, ok := o.Export().(goja.ArrayBuffer); ok {
		return buffer.Bytes(), true
	}
	holder, ok := o.Get("buffer").(*goja.Object)
	if !ok {
		return nil, false
	}
	buffer, ok := holder.Export().(goja.ArrayBuffer)
	if !ok {
		return nil, false
	}
	from, size := int(o.Get("byteOffset").ToInteger()), int(o.Get("byteLength").ToInteger())
	raw := buffer.Bytes()
	if from < 0 || size < 0 || from > len(raw) || size > len(raw)-from {
		return nil, false
	}
	return raw[from : from+size], true
}

func (w *world) bytes(raw []byte) goja.Value {
	return w.library().construct("Uint8Array", w.vm.ToValue(w.vm.NewArrayBuffer(raw)))
}

func (w *world) textEncoder() goja.Value {
	return w.class("TextEncoder", func(call goja.ConstructorCall) *goja.Object {
		_ = call.This.DefineDataProperty("encoding", w.vm.ToValue("utf-8"), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE)
		return nil
	}, map[string]func(goja.FunctionCall) goja.Value{
		"encode": func(call goja.FunctionCall) goja.Value {
			if goja.IsUndefined(call.Argument(0)) {
				return w.bytes(nil)
			}
			return w.bytes([]byte(call.Argument(0).String()))
		},
	})
}

func (w *world) textDecoder() goja.Value {
	return w.class("TextDecoder", func(call goja.ConstructorCall) *goja.Object {
		name := "utf-8"
		if v := call.Argument(0); !goja.IsUndefined(v) {
			name = strings.ToLower(v.String())
		}
		if name != "utf-8" && name != "utf8" {
			panic(w.rangeError(fmt.Sprintf("TextDecoder: the encoding %q is not here, only utf-8", name)))
		}
		fatal := false
		if options, ok := call.Argument(1).(*goja.Object); ok {
			if v := options.Get("fatal"); v != nil {
				fatal = v.ToBoolean()
			}
		}
		_ = call.This.DefineDataProperty("encoding", w.vm.ToValue("utf-8"), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE)
		_ = call.This.DefineDataProperty("fatal", w.vm.ToValue(fatal), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE)
		return nil
	}, map[string]func(goja.FunctionCall) goja.Value{"decode": w.decodeText})
}

func (w *world) decodeText(call goja.FunctionCall) goja.Value {
	if goja.IsUndefined(call.Argument(0)) {
		return w.vm.ToValue("")
	}
	raw, ok := w.bytesOf(call.Argument(0))
	if !ok {
		panic(w.vm.NewTypeError("decode: the argument must be an ArrayBuffer or a view of one"))
	}
	if self, ok := call.This.(*goja.Object); ok && !utf8.Valid(raw) {
		if fatal := self.Get("fatal"); fatal != nil && fatal.ToBoolean() {
			panic(w.vm.NewTypeError("decode: the bytes are no valid utf-8"))
		}
	}
	return w.vm.ToValue(strings.ToValidUTF8(strings.TrimPrefix(string(raw), "\uFEFF"), "\uFFFD"))
}

// class makes a native class.
func (w *world) class(name string, construct func(goja.ConstructorCall) *goja.Object, methods map[string]func(goja.FunctionCall) goja.Value) goja.Value {
	o := w.vm.ToValue(construct).(*goja.Object)
	_ = o.DefineDataProperty("name", w.vm.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	prototype := o.Get("prototype").(*goja.Object)
	for method, f := range methods {
		w.method(prototype, method, f)
	}
	return o
}

// crypto is random in a way that the seed repeats; it is not for secrets.
func (w *world) crypto() goja.Value {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], w.program.Seed)
	w.random = rand.NewChaCha8(seed)
	o := w.vm.NewObject()
	w.method(o, "randomUUID", func(goja.FunctionCall) goja.Value {
		var id [16]byte
		_, _ = w.random.Read(id[:])
		id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
		return w.vm.ToValue(fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]))
	})
	w.method(o, "getRandomValues", func(call goja.FunctionCall) goja.Value {
		raw, ok := w.bytesOf(call.Argument(0))
		if !ok || len(raw) > 65536 {
			panic(w.vm.NewTypeError("getRandomValues: the argument must be a typed array of at most 65536 bytes"))
		}
		_, _ = w.random.Read(raw)
		return call.Argument(0)
	})
	return o
}

func (w *world) performance() goja.Value {
	o := w.vm.NewObject()
	w.method(o, "now", func(goja.FunctionCall) goja.Value {
		return w.vm.ToValue(float64(time.Since(w.start)) / float64(time.Millisecond))
	})
	_ = o.Set("timeOrigin", float64(w.program.Clock.UnixMicro())/1000)
	return o
}
