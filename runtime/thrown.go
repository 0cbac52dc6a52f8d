package runtime

import (
	"slices"
	"strings"

	"github.com/dop251/goja"
)

const (
	// maxThrown bounds the JSON of Failure.Thrown.
	maxThrown = 64 << 10
	// maxCauses bounds how far a chain of causes is followed.
	maxCauses = 5
)

// thrown describes what the program threw. Reading it may run the program's
// code, so it is called below guard.
func (w *world) thrown(v goja.Value) *Failure {
	failure := &Failure{Kind: Exception}
	o, ok := v.(*goja.Object)
	if !ok || o.ClassName() != "Error" {
		failure.Message = shorten("the program threw "+w.inspector().text(v), maxMessage)
	} else {
		failure.Message = shorten(w.errorText(o)+w.causes(o), maxMessage)
	}
	if ok {
		w.trace(failure, o)
		failure.Thrown = w.ownFields(o)
	}
	return failure
}

// errorText is `Name: message`.
func (w *world) errorText(o *goja.Object) string {
	name, message := w.member(o, "name"), w.member(o, "message")
	switch {
	case name == "":
		name = "Error"
	case name == "ReferenceError" && strings.HasSuffix(message, " is not defined"):
		message += "; the globals here are " + w.globalNames() + " and those of the language"
	}
	if message == "" {
		return name
	}
	return name + ": " + message
}

// member reads a property as text; "" when it is absent or throws.
func (w *world) member(o *goja.Object, name string) (text string) {
	w.vm.Try(func() {
		v := o.Get(name)
		switch {
		case v == nil || goja.IsUndefined(v):
		case goja.IsString(v):
			text = v.String()
		default:
			text = w.inspector().text(v)
		}
	})
	return prefix(text, maxMessage)
}

func (w *world) causes(o *goja.Object) string {
	var b strings.Builder
	for range maxCauses {
		var cause goja.Value
		w.vm.Try(func() { cause = o.Get("cause") })
		if cause == nil || goja.IsUndefined(cause) {
			break
		}
		next, ok := cause.(*goja.Object)
		if !ok || next.ClassName() != "Error" {
			b.WriteString("\n  [cause]: " + w.inspector().text(cause))
			break
		}
		b.WriteString("\n  [cause]: " + w.errorText(next))
		o = next
	}
	var errors goja.Value
	w.vm.Try(func() { errors = o.Get("errors") })
	if list, ok := errors.(*goja.Object); ok && list.ClassName() == "Array" {
		b.WriteString("\n  [errors]: " + w.inspector().text(list))
	}
	return b.String()
}

// trace sets the position and the stack.
func (w *world) trace(failure *Failure, o *goja.Object) {
	if o.ClassName() != "Error" {
		return
	}
	frames := w.places.frames(w.member(o, "stack"))
	if origin, ok := w.origins[o]; ok {
		frames = []place{origin}
	}
	if len(frames) > 0 {
		failure.Line, failure.Column = frames[0].line, frames[0].column
		failure.Stack = w.places.stack(frames)
	}
}

// ownFields is the JSON of the fields that the program or the host put on a
// thrown object. Those that are no JSON are left out, and getters are not run.
func (w *world) ownFields(o *goja.Object) []byte {
	if class := classOf(o); isFunctionClass(class) || class == "Array" {
		return nil
	}
	var keys []string
	w.vm.Try(func() { keys = o.Keys() })
	buf := []byte{'{'}
	for _, key := range keys {
		var value []byte
		w.vm.Try(func() { value, _ = w.encoder(maxThrown).encode("", w.inspector().own(o, key)) })
		if value == nil || len(buf)+len(key)+len(value) > maxThrown {
			continue
		}
		if len(buf) > 1 {
			buf = append(buf, ',')
		}
		buf = append(append(appendQuoted(buf, key), ':'), value...)
	}
	if len(buf) == 1 {
		return nil
	}
	return append(buf, '}')
}

// hostError makes the error that rejects a call: an instance of the class that
// the host names, with its fields as own, enumerable properties, so that
// JSON.stringify shows them.
func (w *world) hostError(p *pendingCall, e *CallError) goja.Value {
	o := w.newError(e.Class, e.Message)
	define := func(name string, v goja.Value, enumerable goja.Flag) {
		_ = o.DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, enumerable)
	}
	define("message", w.vm.ToValue(e.Message), goja.FLAG_TRUE)
	if fields, err := w.decoder().decode(e.Fields); len(e.Fields) > 0 && err == nil {
		if fields, ok := fields.(*goja.Object); ok {
			for _, key := range fields.Keys() {
				define(key, fields.Get(key), goja.FLAG_TRUE)
			}
		}
	}
	if p.Line > 0 {
		origin := place{line: p.Line, column: p.Column}
		if w.origins == nil {
			w.origins = make(map[*goja.Object]place)
		}
		w.origins[o] = origin
		define("stack", w.vm.ToValue(e.Class+": "+e.Message+"\n"+w.places.stack([]place{origin})), goja.FLAG_FALSE)
	}
	return o
}

// newError makes an instance of one of the host's classes, or an Error that
// bears the name of a class that is none of them. No code of the program runs:
// the object is a genuine error whatever it did to the constructors.
func (w *world) newError(class, message string) *goja.Object {
	o := w.vm.NewTypeError()
	_ = o.DefineDataProperty("message", w.vm.ToValue(message), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	if slices.Contains(w.host.ErrorClasses, class) {
		_ = o.SetPrototype(w.errorClass(class).prototype)
		return o
	}
	_ = o.SetPrototype(o.Prototype().Prototype())
	if class != "" && class != "Error" {
		_ = o.DefineDataProperty("name", w.vm.ToValue(class), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	}
	return o
}

// refuse rejects a call that the host never sees.
func (w *world) refuse(reject func(any) error, code, message string) {
	e := w.newError(w.host.refusalClass(), message)
	_ = e.DefineDataProperty("code", w.vm.ToValue(code), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_TRUE)
	if err := reject(e); err != nil {
		panic(err)
	}
}

func (w *world) rangeError(message string) *goja.Object {
	o := w.newError("RangeError", message)
	if prototype, ok := w.library().class("RangeError").Get("prototype").(*goja.Object); ok {
		_ = o.SetPrototype(prototype)
	}
	return o
}

// rejections are the promises that were rejected while nobody waited for them.
type rejections struct {
	order    int
	promises map[*goja.Promise]int
}

func (r *rejections) track(p *goja.Promise, operation goja.PromiseRejectionOperation) {
	if operation == goja.PromiseRejectionHandle {
		delete(r.promises, p)
		return
	}
	if r.promises == nil {
		r.promises = make(map[*goja.Promise]int)
	}
	r.order++
	r.promises[p] = r.order
}

// warnRejections prints the errors that the program never looked at: Node
// would end the process, and silence would hide them.
func (w *world) warnRejections() {
	if len(w.rejected.promises) == 0 {
		return
	}
	promises := make([]*goja.Promise, 0, len(w.rejected.promises))
	for p := range w.rejected.promises {
		promises = append(promises, p)
	}
	slices.SortFunc(promises, func(a, b *goja.Promise) int { return w.rejected.promises[a] - w.rejected.promises[b] })
	w.guard(func() *Failure {
		for _, p := range promises[:min(len(promises), 20)] {
			w.print("error", "Unhandled rejection: "+w.inspector().text(p.Result()))
		}
		return nil
	})
}
