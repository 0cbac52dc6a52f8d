package runtime

import "github.com/dop251/goja"

// lookedUp are the names that the language itself looks up on any object. On
// the host's object they are undefined unless the host lists them: else
// `await tools` would call a function then, and wait for ever.
var lookedUp = map[string]bool{"then": true, "toJSON": true, "toString": true, "valueOf": true}

// functionProperties are those of every function.
var functionProperties = map[string]bool{
	"apply": true, "arguments": true, "bind": true, "call": true, "caller": true, "constructor": true, "length": true, "name": true, "prototype": true, "hasOwnProperty": true,
}

// namespace is one level of the host's object while it is being made.
type namespace struct {
	order    []string
	function map[string]string // name → Call.Name
	inner    map[string]*namespace
}

func newNamespace() *namespace {
	return &namespace{function: make(map[string]string), inner: make(map[string]*namespace)}
}

func (n *namespace) add(path []string, name string) {
	key := path[0]
	_, isFunction := n.function[key]
	if !isFunction && n.inner[key] == nil {
		n.order = append(n.order, key)
	}
	if len(path) == 1 {
		n.function[key] = name
		return
	}
	if n.inner[key] == nil {
		n.inner[key] = newNamespace()
	}
	n.inner[key].add(path[1:], name)
}

// functions makes the host's object.
func (w *world) functions() *goja.Object {
	root := newNamespace()
	for _, f := range w.host.Functions {
		root.add(f.Path, f.name())
	}
	return w.namespaceObject(root, "")
}

// namespaceObject makes a frozen object without a prototype, behind a proxy
// that answers for the names that are not there.
func (w *world) namespaceObject(n *namespace, path string) *goja.Object {
	target := w.vm.CreateObject(nil)
	w.fill(target, n, path)
	w.library().call("Object", "preventExtensions", nil, target)
	return w.proxy(target, path, func(name string) bool { return lookedUp[name] })
}

func (w *world) fill(target *goja.Object, n *namespace, path string) {
	for _, key := range n.order {
		var member *goja.Object
		switch name, isFunction := n.function[key]; {
		case isFunction:
			member = w.native(key, w.hostFunction(name))
			if inner := n.inner[key]; inner != nil {
				w.fill(member, inner, path+key+".")
			}
		default:
			member = w.namespaceObject(n.inner[key], path+key+".")
		}
		_ = target.DefineDataProperty(key, member, goja.FLAG_FALSE, goja.FLAG_FALSE, goja.FLAG_TRUE)
	}
}

// proxy answers for the names that target lacks with functions that the host
// gets to reject. except names those that stay undefined.
func (w *world) proxy(target *goja.Object, path string, except func(string) bool) *goja.Object {
	return w.vm.ToValue(w.vm.NewProxy(target, &goja.ProxyTrapConfig{
		Get: func(target *goja.Object, key string, _ goja.Value) goja.Value {
			if v := target.Get(key); v != nil {
				return v
			}
			if except(key) {
				return goja.Undefined()
			}
			return w.unknown(path, key)
		},
		Set:               func(*goja.Object, string, goja.Value, goja.Value) bool { return false },
		DefineProperty:    func(*goja.Object, string, goja.PropertyDescriptor) bool { return false },
		DefinePropertySym: func(*goja.Object, *goja.Symbol, goja.PropertyDescriptor) bool { return false },
		SetPrototypeOf:    func(*goja.Object, *goja.Object) bool { return false },
	})).(*goja.Object)
}

// unknown is the function behind a name that the host did not list. Names
// under it are unknown as well.
func (w *world) unknown(path, key string) goja.Value {
	f := w.native(key, w.hostFunction(path+key))
	return w.proxy(f, path+key+".", func(name string) bool { return lookedUp[name] || functionProperties[name] })
}
