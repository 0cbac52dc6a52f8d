package runtime

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/dop251/goja"
)

// lazyGlobals are made when the program first names them, so that a program
// pays only for what it uses. Their makers use nothing that the program could
// have changed.
var lazyGlobals map[string]func(*world) goja.Value

func init() {
	lazyGlobals = map[string]func(*world) goja.Value{
		"console":         (*world).console,
		"setTimeout":      func(w *world) goja.Value { return w.native("setTimeout", w.arm("setTimeout", false, true)) },
		"setInterval":     func(w *world) goja.Value { return w.native("setInterval", w.arm("setInterval", true, true)) },
		"setImmediate":    func(w *world) goja.Value { return w.native("setImmediate", w.arm("setImmediate", false, false)) },
		"clearTimeout":    func(w *world) goja.Value { return w.native("clearTimeout", w.disarm) },
		"clearInterval":   func(w *world) goja.Value { return w.native("clearInterval", w.disarm) },
		"clearImmediate":  func(w *world) goja.Value { return w.native("clearImmediate", w.disarm) },
		"queueMicrotask":  (*world).queueMicrotask,
		"structuredClone": func(w *world) goja.Value { return w.native("structuredClone", w.structuredClone) },
		"btoa":            func(w *world) goja.Value { return w.native("btoa", w.btoa) },
		"atob":            func(w *world) goja.Value { return w.native("atob", w.atob) },
		"TextEncoder":     (*world).textEncoder,
		"TextDecoder":     (*world).textDecoder,
		"crypto":          (*world).crypto,
		"performance":     (*world).performance,
	}
}

// lazy is the prototype of the global object.
type lazy struct{ *world }

func (l lazy) Get(key string) goja.Value {
	var v goja.Value
	if make, ok := lazyGlobals[key]; ok {
		v = make(l.world)
	} else if slices.Contains(l.host.ErrorClasses, key) {
		v = l.errorClass(key).class
	}
	if v != nil {
		l.setGlobal(key, v)
	}
	return v
}

func (l lazy) Has(key string) bool {
	_, ok := lazyGlobals[key]
	return ok || slices.Contains(l.host.ErrorClasses, key)
}

// Set makes an own property of the global object, as an assignment to a
// property of its prototype does.
func (l lazy) Set(key string, v goja.Value) bool {
	l.setGlobal(key, v)
	return true
}

func (l lazy) Delete(string) bool { return true }
func (l lazy) Keys() []string     { return nil }

func (w *world) setGlobal(name string, v goja.Value) {
	_ = w.vm.GlobalObject().DefineDataProperty(name, v, goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

// install makes the globals. args is what the program was given.
func (w *world) install(args goja.Value) {
	w.guardBlowUps()
	w.setGlobal("args", args)
	global := w.vm.GlobalObject()
	_ = global.DefineDataProperty(w.host.Object, w.functions(), goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE)
	_ = global.SetPrototype(w.vm.NewDynamicObject(lazy{w}))
}

// globalNames lists what this engine adds to the language.
func (w *world) globalNames() string {
	names := append([]string{w.host.Object, "args"}, w.host.ErrorClasses...)
	for name := range lazyGlobals {
		names = append(names, name)
	}
	slices.Sort(names[1:])
	return strings.Join(names, ", ")
}

// native makes a function object with a name.
func (w *world) native(name string, f func(goja.FunctionCall) goja.Value) *goja.Object {
	o := w.vm.ToValue(f).(*goja.Object)
	_ = o.DefineDataProperty("name", w.vm.ToValue(name), goja.FLAG_FALSE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	return o
}

// method adds a native method to o.
func (w *world) method(o *goja.Object, name string, f func(goja.FunctionCall) goja.Value) {
	_ = o.DefineDataProperty(name, w.native(name, f), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
}

//go:embed errorclass.js
var errorClassSource string

var errorClassProgram = sync.OnceValue(func() *goja.Program {
	return goja.MustCompile("errorclass.js", errorClassSource, true)
})

// errorClass is one of the host's classes.
type errorClass struct{ class, prototype *goja.Object }

// errorClass returns the host's class of that name, making it when it is first
// needed.
func (w *world) errorClass(name string) errorClass {
	if made, ok := w.classes[name]; ok {
		return made
	}
	v, err := w.vm.RunProgram(errorClassProgram())
	if err != nil {
		panic(err)
	}
	factory, _ := goja.AssertFunction(v)
	class, err := factory(goja.Undefined(), w.vm.ToValue(name), w.library().class("Error"))
	if err != nil {
		panic(err)
	}
	made := errorClass{class: class.(*goja.Object)}
	made.prototype = made.class.Get("prototype").(*goja.Object)
	_ = made.prototype.DefineDataProperty("name", w.vm.ToValue(name), goja.FLAG_TRUE, goja.FLAG_TRUE, goja.FLAG_FALSE)
	if w.classes == nil {
		w.classes = make(map[string]errorClass)
	}
	w.classes[name] = made
	return made
}
