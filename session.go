package dsh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/ptc"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

// Session is one workspace with tools, permissions and a log. It is safe for
// concurrent use.
type Session struct {
	// Registry holds the tools and the stages in front of them. Add to it
	// before the first call that needs what you add.
	Registry *tools.Registry

	session *tools.Session
	local   *local.Set
	release func() // gives back the engine
	extra   []string
	full    bool         // partial enforcement is refused
	execs   atomic.Int64 // commands of Exec so far

	ctx    context.Context // ends with the session
	cancel context.CancelFunc
	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup

	closing  sync.Once
	closeErr error
}

// Open starts a session. It ends with Close, or when ctx ends.
//
// Errors: *policy.RootError for an unusable Dir; *UnknownToolsError;
// *LogPlaceError; those of [session.Create] for the log.
func Open(ctx context.Context, o *Options) (*Session, error) {
	options := Options{}
	if o != nil {
		options = *o
	}
	if options.Local == nil {
		options.Local = &local.Options{}
	}
	s := &Session{local: local.New(options.Local), release: func() {}, extra: options.Local.Extra, full: options.Local.RequireFull}
	if err := s.open(&options); err != nil {
		return nil, errors.Join(err, s.end())
	}
	s.ctx, s.cancel = context.WithCancel(ctx)
	context.AfterFunc(s.ctx, func() { s.Close() })
	return s, nil
}

func (s *Session) open(o *Options) error {
	root, err := policy.Canonical(orCurrent(o.Dir))
	if err != nil {
		return err
	}
	chosen, err := choose(s.local.Tools(), o.Tools)
	if err != nil {
		return err
	}
	engine, err := s.engine(o)
	if err != nil {
		return err
	}
	if err := s.begin(o, root); err != nil {
		return err
	}
	s.Registry = tools.NewRegistry(&tools.Options{
		Mode: policy.ReadOnly, Root: root, Presentation: o.Presentation, RequireDenial: o.RequireDenial, Logger: o.Logger,
		Approvals: policy.NewApprovals(o.QuestionDeadline, o.Answerers...),
	})
	s.Registry.Guard("log-place", logPlace(s.extra))
	s.Registry.After("spill", local.Spill(&local.SpillOptions{MaxInlineTokens: o.Local.MaxInlineTokens}))
	for _, t := range chosen {
		s.Registry.Add(t)
	}
	ptc.Register(s.Registry, ptc.Options{Engine: engine, Limits: o.Limits, InFlight: o.InFlight})
	return nil
}

func orCurrent(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// choose returns the tools of those names, all for nil.
func choose(list []tools.Tool, names []string) ([]tools.Tool, error) {
	if names == nil {
		return list, nil
	}
	var chosen []tools.Tool
	var known []string
	for _, t := range list {
		known = append(known, t.Name)
		if slices.Contains(names, t.Name) {
			chosen = append(chosen, t)
		}
	}
	unknown := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(known, n) })
	if len(unknown) > 0 {
		return nil, &UnknownToolsError{Names: unknown, Known: known}
	}
	return chosen, nil
}

// begin opens the log and pins the permissions.
func (s *Session) begin(o *Options, root string) error {
	log, err := s.newLog(o, root)
	if err != nil {
		return err
	}
	by := o.By
	if by == "" {
		by = "embedder"
	}
	permissions, err := policy.Begin(log, o.Mode, o.Approval, by, nil)
	if err == nil {
		s.session, err = tools.NewSession(permissions)
	}
	if err != nil {
		return errors.Join(err, log.Close())
	}
	return nil
}

func (s *Session) newLog(o *Options, root string) (*session.Log, error) {
	if o.Temporary {
		if o.Log != "" {
			return nil, fmt.Errorf("a temporary log has no place, but %q was named for it", o.Log)
		}
		return session.Temporary(root)
	}
	path := o.Log
	if path == "" {
		var err error
		if path, err = session.NewPath(time.Now()); err != nil {
			return nil, err
		}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := checkLogPlace(path, policy.Scope{Mode: o.Mode, Root: root, Extra: s.extra}); err != nil {
		return nil, err
	}
	return session.Create(path, root, nil)
}

// engine is the session's own or the shared one.
func (s *Session) engine(o *Options) (engine runtime.Engine, err error) {
	if o.Engine != nil {
		return o.Engine, nil
	}
	engine, s.release, err = sharedEngine()
	return engine, err
}

// Permissions are the session's modes; changing one is an event of its log.
func (s *Session) Permissions() *policy.Session { return s.session.Session }

// Log of the session.
func (s *Session) Log() *session.Log { return s.session.Log() }

// Call makes one call of a tool as a model would, and returns its result after
// the call has really ended. args is what [json.Marshal] makes an object of;
// nil means {}.
func (s *Session) Call(ctx context.Context, tool string, args any) tools.Result {
	raw, err := arguments(args)
	if err != nil {
		return refused(tools.InvalidArgs, fmt.Sprintf("the arguments of %s are no JSON: %v", tool, err))
	}
	ctx, done, err := s.enter(ctx)
	if err != nil {
		return refused(tools.AbortedBeforeDispatch, err.Error())
	}
	defer done()
	return s.Registry.Call(ctx, tools.Request{Tool: tool, Args: raw, Session: s.session})
}

func arguments(args any) (json.RawMessage, error) {
	switch a := args.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return a, nil
	default:
		return json.Marshal(args)
	}
}

// refused is the result of a call that never reached the registry.
func refused(code tools.Code, message string) tools.Result {
	return tools.Result{Error: &tools.Error{Code: code, Message: message}, Content: []tools.Content{tools.Text(message)}}
}

// Run runs a program: it is a call of run_code. o may be nil. How the program
// ended is in the report. The error, a *tools.Error, is for a run that was
// refused before it began.
func (s *Session) Run(ctx context.Context, source string, o *ptc.Run) (ptc.Report, error) {
	if o != nil {
		ctx = ptc.WithRun(ctx, *o)
	}
	result := s.Call(ctx, tools.RunCode, map[string]string{"code": source})
	return ptc.ReportOf(result)
}

// ErrClosed is what calls of a closed session say.
var ErrClosed = errors.New("the session is closed")

// enter counts a call in and ties its context to the session.
func (s *Session) enter(ctx context.Context) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, ErrClosed
	}
	s.calls.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	unlink := context.AfterFunc(s.ctx, func() { cancel(ErrClosed) })
	return ctx, func() {
		unlink()
		cancel(nil)
		s.calls.Done()
	}, nil
}

// EndJobs ends the background jobs and returns those that were still running.
func (s *Session) EndJobs() []local.JobStatus { return s.local.End(s.session) }

// Close cancels the calls in progress, waits until they and the background jobs
// have ended, and closes the log.
func (s *Session) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.closing.Do(func() {
		s.cancel()
		s.calls.Wait()
		s.EndJobs()
		s.closeErr = s.end()
	})
	return s.closeErr
}

// end releases what an opened or half-opened session holds.
func (s *Session) end() error {
	s.local.Close()
	s.release()
	if s.session == nil {
		return nil
	}
	return s.session.Log().Close()
}
