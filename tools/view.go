package tools

import (
	"fmt"
	"maps"
	"slices"
)

// view is what makes a registry a view of another.
type view struct {
	parent *Registry
	only   map[string]bool // nil: every tool
	hidden map[string]bool
	with   []Tool
}

// ViewOption narrows or adds to what a view has of its parent's tools.
type ViewOption func(*view)

// Only leaves the named tools, and run_code. Without a name it leaves run_code
// alone. Tools that the parent gets later are not in the view.
func Only(names ...string) ViewOption {
	return func(v *view) {
		kept := setOf(names)
		if v.only != nil {
			maps.DeleteFunc(kept, func(name string, _ bool) bool { return !v.only[name] })
		}
		v.only = kept
	}
}

// Without hides the named tools.
func Without(names ...string) ViewOption {
	return func(v *view) { maps.Copy(v.hidden, setOf(names)) }
}

// With adds tools that only the view has. They are not filtered by the view's
// own Only and Without, and take the place of the parent's tools of the same
// names.
func With(list ...Tool) ViewOption {
	return func(v *view) { v.with = append(v.with, list...) }
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

// View returns a registry for a sub-agent: the tools of r as the options leave
// them, behind every stage that r has now or gets later, under r's options.
// Stages registered with the view are inside of r's: a listener of r that does
// not call the next one overrides them, a guard is never overridden. Nothing
// done to a view changes r.
//
// A view allows nothing that r does not. What r hides stays hidden, and a tool
// that the view adds cannot take its name. run_code is always there when r has
// it, can be neither hidden nor replaced, and its programs reach the tools of
// the view only.
//
// A name in Only or Without that r does not have, a name of a tool that is not
// free, and a tool that Add would refuse are programmer's errors: View panics.
func (r *Registry) View(options ...ViewOption) *Registry {
	v := &view{parent: r, hidden: map[string]bool{}}
	for _, o := range options {
		o(v)
	}
	above := r.current()
	v.check(above)
	derived := &Registry{options: r.options, view: v, telemetry: r.telemetry}
	derived.config.Store(&config{tools: map[string]*compiled{}})
	for _, t := range v.with {
		if t.Name == RunCode {
			panic("tools: run_code cannot be replaced in a view")
		}
		derived.add(t)
	}
	return derived
}

// check panics when the view asks for what its parent does not have or hides.
func (v *view) check(above *config) {
	for name := range v.only {
		if above.tools[name] == nil && name != RunCode {
			panic(fmt.Sprintf("tools: a view keeps only %q, but its parent has no such tool", name))
		}
	}
	for name := range v.hidden {
		if name == RunCode {
			panic("tools: run_code cannot be hidden in a view")
		}
		if above.tools[name] == nil {
			panic(fmt.Sprintf("tools: a view leaves out %q, but its parent has no such tool", name))
		}
	}
}

// admit panics when a name is not free in the view.
func (v *view) admit(name string) {
	above := v.parent.current()
	given := slices.ContainsFunc(v.with, func(t Tool) bool { return t.Name == name })
	switch {
	case name == RunCode:
		panic("tools: run_code is registered with the root registry, not with a view")
	case above.hidden[name]:
		panic(fmt.Sprintf("tools: a view adds %q, which is the name of a tool that its parent hides", name))
	case above.tools[name] != nil && !given:
		panic(fmt.Sprintf("tools: tool %q is registered twice; a view replaces it through With", name))
	}
}

func (v *view) keeps(name string) bool {
	return name == RunCode || !v.hidden[name] && (v.only == nil || v.only[name])
}

// merged is the config that a view derived from those of its parent and its
// own.
type merged struct{ above, own, config *config }

// current is the config that a call sees. A view derives it anew only after
// one of the two it follows from has changed.
func (r *Registry) current() *config {
	own := r.config.Load()
	if r.view == nil {
		return own
	}
	above := r.view.parent.current()
	if m := r.merged.Load(); m != nil && m.above == above && m.own == own {
		return m.config
	}
	m := &merged{above, own, r.view.merge(above, own)}
	r.merged.Store(m)
	return m.config
}

func (v *view) merge(above, own *config) *config {
	c := &config{
		tools: map[string]*compiled{}, hidden: maps.Clone(above.hidden),
		listeners: slices.Concat(above.listeners, own.listeners),
		guards:    slices.Concat(above.guards, own.guards),
		wrappers:  slices.Concat(above.wrappers, own.wrappers),
		posts:     slices.Concat(above.posts, own.posts),
		observers: slices.Concat(above.observers, own.observers),
	}
	if c.hidden == nil {
		c.hidden = map[string]bool{}
	}
	for name, t := range above.tools {
		if v.keeps(name) {
			c.tools[name] = t
		} else {
			c.hidden[name] = true
		}
	}
	for name, t := range own.tools {
		c.tools[name] = t
		delete(c.hidden, name)
	}
	return c
}
