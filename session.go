package dsh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/ptc"
	"github.com/dsh-run/dsh/sandbox"
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
	release func() // gives back what the session shares with others
	reach   reach
	full    bool // partial enforcement is refused
	chain   sandbox.Chain
	execs   atomic.Int64 // number of the last command of Exec
	repairs Repairs

	redactor *session.Redactor

	ctx    context.Context // ends with the session
	cancel context.CancelFunc
	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup

	closing  sync.Once
	closeErr error
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
	}
	// What only HTML needs escaped stays readable in the log.
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(args)
	return bytes.TrimRight(b.Bytes(), "\n"), err
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
	defer s.release()
	if s.session == nil {
		return nil
	}
	return s.session.Log().Close()
}
