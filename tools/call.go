package tools

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"github.com/dsh-run/dsh/policy"
)

// Request asks for one call.
type Request struct {
	// ID of the call. One of the caller's own is used once in a session: the log
	// tells calls apart by it. Default: the session's next, c1, c2, …, and the
	// Parent's next, c1:1, c1:2, …; without either none.
	ID   string
	Tool string
	// Args is the JSON object of the arguments. Default: {}.
	Args json.RawMessage
	// Caller. Default: the Parent's, else one of the kind direct.
	Caller policy.Caller
	// Session that the call belongs to; with a Parent it is always the Parent's.
	// Default: none; then nothing is logged, nobody can be asked and the call
	// cannot be widened.
	Session *Session
	// Parent is the call whose body makes this one. It ends after this one, and
	// makes none once its body has returned. Default: none.
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
	below    *family
	registry *Registry
}

// Registry that the call was made through, a view where it was one. Calls that
// a body makes for its caller go through it.
func (c *Call) Registry() *Registry { return c.registry }

// facts are what the body and the runtime learned about a call.
type facts struct {
	mu          sync.Mutex
	over        bool
	confinement *policy.Confinement
	attached    []Content
}

// Confine records what confined the body, for the result and the log; the
// body's word counts before a wrapper's. Only these can, until they return: else
// it does nothing.
func (c *Call) Confine(by policy.Confinement) {
	if c.facts == nil {
		return
	}
	c.facts.record(func(f *facts) { f.confinement = copiedConfinement(&by) })
}

// Attach adds blocks behind the rendered ones, for what a value cannot hold,
// such as the bytes of an image; those of wrappers come last. Only the body and
// its wrappers can, until they return: else it does nothing. What a failed
// attempt attached goes when the body is tried again. A block that is neither
// text nor image is a programmer's error: it panics, which fails the call.
func (c *Call) Attach(blocks ...Content) {
	if err := checkContent(blocks...); err != nil {
		panic("tools: " + err.Error())
	}
	if c.facts == nil {
		return
	}
	c.facts.record(func(f *facts) { f.attached = append(f.attached, copiedContent(blocks)...) })
}

// record changes the facts, unless it is too late for that.
func (f *facts) record(change func(*facts)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.over {
		change(f)
	}
}

// close keeps the facts as they are.
func (f *facts) close() {
	f.record(func(f *facts) { f.over = true })
}

// learned is what was recorded so far, blocks of f before those of outer.
func (f *facts) learned(outer *facts) (*policy.Confinement, []Content) {
	f.mu.Lock()
	defer f.mu.Unlock()
	by, blocks := copiedConfinement(f.confinement), copiedContent(f.attached)
	if outer == nil {
		return by, blocks
	}
	outerBy, outerBlocks := outer.learned(nil)
	if by == nil {
		by = outerBy
	}
	return by, append(blocks, outerBlocks...)
}

// Scope of the file effects that this call may have.
func (c *Call) Scope() policy.Scope {
	s := policy.Scope{Mode: c.Mode, Root: c.Root}
	if c.Session != nil {
		s.Temp, s.Worktree = c.Session.Log().TempDir(), c.Session.State().Worktree
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
