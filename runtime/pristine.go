package runtime

import "github.com/dop251/goja"

// pristine are objects of a world as they were before the program could touch
// anything. What decides about a call, or about a value that leaves the
// program, uses these and nothing else of the world.
type pristine struct {
	object, array, text *goja.Object // prototypes
}

func newPristine(vm *goja.Runtime) pristine {
	return pristine{
		object: vm.NewObject().Prototype(),
		array:  vm.NewArray().Prototype(),
		text:   vm.ToValue("").ToObject(vm).Prototype(),
	}
}

// library gives the host's conveniences, such as console and structuredClone,
// the language's own functions when they are first needed: making them costs
// more than a short run. A program that has replaced them by then changes what
// it prints itself, and nothing else.
type library struct{ vm *goja.Runtime }

func (l library) class(name string) *goja.Object {
	if o, ok := l.vm.GlobalObject().Get(name).(*goja.Object); ok {
		return o
	}
	panic(l.vm.NewTypeError("the global %s was replaced", name))
}

func (l library) construct(class string, args ...goja.Value) *goja.Object {
	constructor, ok := goja.AssertConstructor(l.class(class))
	if !ok {
		panic(l.vm.NewTypeError("the global %s was replaced", class))
	}
	o, err := constructor(nil, args...)
	if err != nil {
		panic(err)
	}
	return o
}

// call calls class[name], or class.prototype[name] on a receiver.
func (l library) call(class, name string, this goja.Value, args ...goja.Value) goja.Value {
	holder := l.class(class)
	if this != nil {
		holder, _ = holder.Get("prototype").(*goja.Object)
	}
	if holder != nil {
		if f, ok := goja.AssertFunction(holder.Get(name)); ok {
			if this == nil {
				this = goja.Undefined()
			}
			v, err := f(this, args...)
			if err != nil {
				panic(err)
			}
			return v
		}
	}
	panic(l.vm.NewTypeError("%s of the global %s was replaced", name, class))
}

func (w *world) library() library { return library{w.vm} }
