package local

import (
	"os"
	"slices"
	"sync"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/sandbox"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// Options of a set of tools. Nil means all defaults.
type Options struct {
	// Extra are directories that workspace-write may also change. Default:
	// none, since a shared cache can be poisoned.
	Extra []string
	// Protected replaces policy.DefaultProtected. Default: nil, that list.
	Protected []string
	// RequireFull refuses calls whose mode cannot be enforced in full.
	// Default: false, partial enforcement is reported.
	RequireFull bool
	// Chain says what may confine commands. Default: every backend of this
	// platform.
	Chain sandbox.Chain
	// Environment are names of variables that commands get although they look
	// like secrets. Default: none.
	Environment []string
	// Facts are variables that every command gets besides those of this
	// package. A name that is not to be given, or that two owners give, is a
	// programmer's error: New panics. Default: none.
	Facts []Fact
	// MaxInlineTokens bounds the text that a model gets of a command, at four
	// bytes a token. It should be what [Spill] has, so that nothing is cut
	// twice; the root package sees to that. Default: 12500.
	MaxInlineTokens int
	// OneShot ends with its session what a command line started: a foreground
	// command that reaches its timeout is killed by default instead of going on
	// as a job. Default: false.
	OneShot bool
	// JobEnded is told the end of each background job once, from a goroutine of
	// its own. Default: nobody; the log has it.
	JobEnded func(session *tools.Session, job JobStatus)
}

// Set is the tools of this machine: files, search, commands and jobs. What it
// keeps per session ends with End or Close. It is safe for concurrent use.
type Set struct {
	options Options

	mu       sync.Mutex
	sessions map[*tools.Session]*state
	closed   bool
}

// state is what a set keeps for one session; the zero session stands for all
// calls without one.
type state struct {
	seen *observations
	jobs *jobs
}

// New returns a set.
func New(o *Options) *Set {
	s := &Set{sessions: map[*tools.Session]*state{}}
	if o != nil {
		s.options = *o
		s.options.Extra = slices.Clone(o.Extra)
		s.options.Protected = slices.Clone(o.Protected)
		s.options.Environment = slices.Clone(o.Environment)
		s.options.Facts = slices.Clone(o.Facts)
	}
	checkFacts(s.options.Facts)
	return s
}

// Tools returns read, write, edit, glob, grep, bash (pwsh on Windows),
// job_list, job_output and job_kill, for [tools.Registry.Add].
func (s *Set) Tools() []tools.Tool {
	return slices.Concat(s.fileTools(), s.searchTools(), s.shellTools())
}

// Resume takes over a session whose log was opened again: what it saw, and its
// jobs. It writes an end for those whose end nobody saw and returns them.
func (s *Set) Resume(owner *tools.Session) ([]JobStatus, error) {
	st, err := s.of(owner)
	if err != nil {
		return nil, err
	}
	return st.jobs.closeLost()
}

// End ends the session's jobs and forgets the session; the log keeps what it
// saw. It returns the jobs that were still running.
func (s *Set) End(session *tools.Session) []JobStatus {
	s.mu.Lock()
	st := s.sessions[session]
	delete(s.sessions, session)
	s.mu.Unlock()
	if st == nil {
		return nil
	}
	return st.jobs.end()
}

// Close ends every session. Calls made later are refused.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	all := s.sessions
	s.sessions = map[*tools.Session]*state{}
	s.mu.Unlock()
	for _, st := range all {
		st.jobs.end()
	}
}

// of returns what the set keeps for a session, folded from its log
// the first time.
func (s *Set) of(owner *tools.Session) (*state, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fail(tools.ToolFailed, "the session has been closed")
	}
	if st := s.sessions[owner]; st != nil {
		return st, nil
	}
	st, err := s.fold(owner)
	if err != nil {
		return nil, fail(tools.ToolFailed, "the session's log could not be read: %v", err)
	}
	s.sessions[owner] = st
	return st, nil
}

func (s *Set) fold(owner *tools.Session) (*state, error) {
	st := &state{seen: &observations{byPath: map[string]observation{}}, jobs: s.newJobs(owner)}
	if owner == nil {
		return st, nil
	}
	st.seen.log = owner.Log()
	return st, owner.Log().Replay(func(e session.Event) {
		switch e.Type {
		case session.FSObserved:
			st.seen.apply(e)
		case session.JobStart, session.JobEnd:
			st.jobs.apply(e)
		}
	})
}

// scope of the file effects that a call may have.
func (s *Set) scope(call *tools.Call) policy.Scope {
	scope := call.Scope()
	scope.Extra, scope.Protected = s.options.Extra, s.options.Protected
	if scope.Root == "" {
		// An empty root would contain every path.
		scope.Root, scope.Mode = string(os.PathSeparator), strict(scope.Mode)
	}
	return scope
}

// strict is the mode of a call that has no workspace to write to.
func strict(mode policy.Mode) policy.Mode {
	if mode == policy.WorkspaceWrite {
		return policy.ReadOnly
	}
	return mode
}

// resolve follows a path of the call's arguments.
func (s *Set) resolve(call *tools.Call, path string) (target, error) {
	return resolve(s.scope(call).Root, path)
}
