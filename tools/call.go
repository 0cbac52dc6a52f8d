package tools

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/dsh-run/dsh/policy"
)

// Request asks for one call.
type Request struct {
	// ID of the call. Default: the session's next, c1, c2, …; a call with a
	// Parent needs one.
	ID   string
	Tool string
	// Args is the JSON object of the arguments. Default: {}.
	Args json.RawMessage
	// Caller. Default kind: direct.
	Caller policy.Caller
	// Session that the call belongs to. Default: the Parent's, else none: then
	// nothing is logged, nobody can be asked and the call cannot be widened.
	Session *Session
	// Parent is the call whose body makes this one. Default: none.
	Parent *Call
	// Lane orders this call among its siblings. Default: no order.
	Lane Lane
	// Timeout of one attempt of the body, if it is shorter than the tool's own.
	// Default: the tool's own.
	Timeout time.Duration
}

// Lane orders the bodies and the commits of sibling calls.
type Lane interface {
	// Enter is called after the before-stages let the call through. It returns
	// when the body may start; overlaps asks the tool's classifier now.
	// An error means that ctx ended first.
	Enter(overlaps func() bool) error
	// Commit is called once for every call, also one that did not enter. It
	// returns when the after-stages may run.
	Commit()
}

// Call is one call on its way. Each stage, each wrapper and each attempt of the
// body gets its own copy: changing it changes nothing for anyone else.
type Call struct {
	ID, RootID, ParentID string
	Tool                 string
	// Args as they were logged, except that members given as null for an
	// optional argument that does not take null are gone.
	Args   json.RawMessage
	Caller policy.Caller
	// Session is nil for a call without one.
	Session *Session
	// Mode that this very call runs in, an approved widening included.
	Mode policy.Mode
	// Approval policy at the start of the call.
	Approval policy.Approval
	// Root is the workspace, canonical.
	Root string
	// Confined and Effect are the tool's.
	Confined bool
	Effect   Effect

	facts    *facts
	registry *Registry
}

// Registry that the call was made through, a view where it was one. Calls that
// a body makes for its caller go through it.
func (c *Call) Registry() *Registry { return c.registry }

// facts are what the body and the runtime learned about a call.
type facts struct {
	mu          sync.Mutex
	confinement *policy.Confinement
	attached    []Content
}

// Confine records what confined the body, for the result and the log. Only the
// body and its wrappers can: from another stage it does nothing.
func (c *Call) Confine(by policy.Confinement) {
	if c.facts == nil {
		return
	}
	c.facts.mu.Lock()
	defer c.facts.mu.Unlock()
	c.facts.confinement = copiedConfinement(&by)
}

// Attach adds blocks behind the rendered ones, for what a value cannot hold,
// such as the bytes of an image. Only the body and its wrappers can: from
// another stage it does nothing. What a failed attempt attached goes when the
// body is tried again.
func (c *Call) Attach(blocks ...Content) {
	if c.facts == nil {
		return
	}
	c.facts.mu.Lock()
	defer c.facts.mu.Unlock()
	c.facts.attached = append(c.facts.attached, copiedContent(blocks)...)
}

// attachments is how many blocks are attached.
func (f *facts) attachments() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.attached)
}

// keep drops the blocks after the first n.
func (f *facts) keep(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attached = slices.Clip(f.attached[:n])
}

// learned is a copy of what was recorded so far.
func (f *facts) learned() (*policy.Confinement, []Content) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return copiedConfinement(f.confinement), copiedContent(f.attached)
}

// Scope of the file effects that this call may have.
func (c *Call) Scope() policy.Scope {
	s := policy.Scope{Mode: c.Mode, Root: c.Root}
	if c.Session != nil {
		s.Temp = c.Session.Log().TempDir()
	}
	return s
}

// copied is the call as the body and its wrappers get it.
func (c *Call) copied() *Call {
	own := *c
	own.Args = bytes.Clone(c.Args)
	return &own
}

// frozen is the call as the other stages see it.
func (c *Call) frozen() Call {
	seen := c.copied()
	seen.facts = nil
	return *seen
}
