package tools

import (
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/dsh-run/dsh/policy"
)

// RunCode is the reserved name of the tool that runs programs.
const RunCode = "run_code"

// Presentation says which tools a model is offered to call directly.
type Presentation uint8

// The presentations.
const (
	Both     Presentation = iota // every tool and run_code
	Native                       // every tool but run_code
	CodeOnly                     // only run_code; the others from inside a program
)

// Options of a registry. Nil means all defaults.
type Options struct {
	// Mode of calls without a session. Default: read-only.
	Mode policy.Mode
	// Root of calls without a session, canonical. Default: the process's working
	// directory when the registry is made; where that cannot be a workspace,
	// such as /, Call.Root is empty and a confined tool writes nowhere.
	Root string
	// Approvals answers questions. Default: none; then each question is a no.
	Approvals *policy.Approvals
	// RequireDenial refuses a widening without asking anyone where the session's
	// log has no earlier denial of the same access. Default: false; the question
	// says that there is none.
	RequireDenial bool
	// Presentation. Default: Both.
	Presentation Presentation
	// Logger receives panics of observers. Default: slog.Default().
	Logger *slog.Logger
	// TracerProvider and MeterProvider receive the spans and metrics of calls,
	// see TelemetryScope. Default: the global providers of OpenTelemetry, which
	// do nothing until the process installs others.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
}

// Registry holds tools and the stages in front of them. It is safe for
// concurrent use; a call keeps the stages it started with.
type Registry struct {
	options Options
	mu      sync.Mutex // held by registering
	config  atomic.Pointer[config]
	view    *view // nil for a root registry
	merged  atomic.Pointer[merged]

	telemetry *telemetry
}

// config is what a call sees of a registry; it is never changed.
type config struct {
	tools     map[string]*compiled
	hidden    map[string]bool // names of tools that views on the way here left out
	listeners []named[Listener]
	guards    []named[Guard]
	wrappers  []named[Wrapper]
	posts     []named[Post]
	observers []named[Observer]
}

// NewRegistry returns a registry without tools.
func NewRegistry(o *Options) *Registry {
	r := &Registry{}
	if o != nil {
		r.options = *o
	}
	if r.options.Root == "" {
		r.options.Root, _ = policy.Canonical(".") // empty where it fails
	}
	if r.options.Logger == nil {
		r.options.Logger = slog.Default()
	}
	r.telemetry = newTelemetry(r.options)
	r.config.Store(&config{tools: map[string]*compiled{}})
	return r
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// Add registers a tool. A name that is malformed, taken or reserved, a missing
// part, or a schema that does not compile is a programmer's error: it panics.
func (r *Registry) Add(t Tool) {
	if t.Name == RunCode {
		panic("tools: the name run_code is reserved for programs")
	}
	r.add(t)
}

// AddProgram registers the tool that runs programs. Its name must be RunCode.
func (r *Registry) AddProgram(t Tool) {
	if t.Name != RunCode {
		panic(fmt.Sprintf("tools: the tool that runs programs is called %s, not %q", RunCode, t.Name))
	}
	r.add(t)
}

func (r *Registry) add(t Tool) {
	c, err := compile(t)
	if err != nil {
		panic(fmt.Sprintf("tools: tool %q: %v", t.Name, err))
	}
	if r.view != nil {
		r.view.admit(t.Name)
	}
	r.change(func(c2 *config) {
		if c2.tools[t.Name] != nil {
			panic(fmt.Sprintf("tools: tool %q is registered twice", t.Name))
		}
		c2.tools = maps.Clone(c2.tools)
		c2.tools[t.Name] = c
	})
}

func (r *Registry) change(f func(*config)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := *r.config.Load()
	f(&c)
	r.config.Store(&c)
}

// Listen registers a pre-execute listener. name says in results and the log
// who denied.
func (r *Registry) Listen(name string, f Listener) {
	r.change(func(c *config) { c.listeners = appended(c.listeners, name, f) })
}

// Guard registers a guard.
func (r *Registry) Guard(name string, f Guard) {
	r.change(func(c *config) { c.guards = appended(c.guards, name, f) })
}

// Wrap registers a wrapper around the body.
func (r *Registry) Wrap(name string, f Wrapper) {
	r.change(func(c *config) { c.wrappers = appended(c.wrappers, name, f) })
}

// After registers a post-execute step.
func (r *Registry) After(name string, f Post) {
	r.change(func(c *config) { c.posts = appended(c.posts, name, f) })
}

// Observe registers an observer.
func (r *Registry) Observe(name string, f Observer) {
	r.change(func(c *config) { c.observers = appended(c.observers, name, f) })
}

func appended[F any](list []named[F], name string, f F) []named[F] {
	return append(slices.Clip(list), named[F]{name, f})
}

// Tools returns the registered tools, sorted by name, run_code included.
func (r *Registry) Tools() []Tool {
	c := r.current()
	list := make([]Tool, 0, len(c.tools))
	for _, name := range slices.Sorted(maps.Keys(c.tools)) {
		list = append(list, c.tools[name].Tool)
	}
	return list
}

// Offered returns the tools that a model is offered to call directly, sorted by
// name: exactly those for which Offers reports true.
func (r *Registry) Offered() []Tool {
	return slices.DeleteFunc(r.Tools(), func(t Tool) bool { return !offered(r.options.Presentation, t.Name) })
}

// Offers reports whether a direct call may name the tool.
func (r *Registry) Offers(tool string) bool {
	return r.current().tools[tool] != nil && offered(r.options.Presentation, tool)
}

// offered is the one predicate behind what is shown and what is refused.
func offered(p Presentation, tool string) bool {
	switch p {
	case Native:
		return tool != RunCode
	case CodeOnly:
		return tool == RunCode
	default:
		return true
	}
}

// Overlaps reports whether a call of the tool with these arguments may run
// beside its siblings.
func (r *Registry) Overlaps(tool string, args []byte) bool {
	t := r.current().tools[tool]
	return t != nil && t.overlaps(args)
}
