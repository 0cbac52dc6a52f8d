package dsh

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/ptc"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

// Open starts a session, or goes on with one. It ends with Close, or when ctx
// ends.
//
// Errors: *policy.RootError for an unusable Dir; *UnknownToolsError;
// *ReachError; *WorkspaceError; those of [session.Create] and [session.Open]
// for the log.
func Open(ctx context.Context, o *Options) (*Session, error) {
	options := Options{}
	if o != nil {
		options = *o
	}
	if options.Local == nil {
		options.Local = &local.Options{}
	}
	s := &Session{
		local: local.New(options.Local), full: options.Local.RequireFull, chain: options.Local.Chain,
		reach: reach{extra: options.Local.Extra, files: slices.Clone(options.OutOfReach)},
	}
	s.release = s.local.Close
	if err := s.open(&options); err != nil {
		return nil, errors.Join(err, s.end())
	}
	s.live(ctx)
	return s, nil
}

// live ties the session to ctx.
func (s *Session) live(ctx context.Context) {
	s.ctx, s.cancel = context.WithCancel(ctx)
	context.AfterFunc(s.ctx, func() { s.Close() })
}

func (s *Session) open(o *Options) error {
	root, err := workspace(o)
	if err != nil {
		return err
	}
	chosen, err := choose(s.local.Tools(), o.Tools)
	if err != nil {
		return err
	}
	if s.redactor, err = session.NewRedactor(o.Redact); err != nil {
		return err
	}
	engine, err := s.engine(o)
	if err != nil {
		return err
	}
	if o.Resume != "" {
		err = s.resume(o)
	} else {
		err = s.begin(o, root)
	}
	if err != nil {
		return err
	}
	s.Registry = tools.NewRegistry(&tools.Options{
		Mode: policy.ReadOnly, Root: root, Presentation: o.Presentation, RequireDenial: o.RequireDenial, Logger: o.Logger,
		Approvals: policy.NewApprovals(o.QuestionDeadline, o.Answerers...),
	})
	s.Registry.Guard("reach", s.reach.guard)
	s.Registry.After("spill", local.Spill(&local.SpillOptions{MaxInlineTokens: o.Local.MaxInlineTokens}))
	s.Registry.After("repeated-failure", tools.Reminder())
	for _, t := range chosen {
		s.Registry.Add(t)
	}
	ptc.Register(s.Registry, ptc.Options{Engine: engine, Limits: o.Limits, InFlight: o.InFlight})
	return nil
}

// workspace is the canonical root: that of Dir, or of the session that goes
// on.
func workspace(o *Options) (string, error) {
	if o.Resume == "" {
		return policy.Canonical(orCurrent(o.Dir))
	}
	header, err := session.ReadHeader(o.Resume)
	if err != nil {
		return "", err
	}
	root, err := policy.Canonical(header.Cwd)
	if err != nil {
		return "", err
	}
	if root != header.Cwd {
		return "", &policy.RootError{Root: header.Cwd, Reason: "it now leads to " + root}
	}
	if o.Dir == "" {
		return root, nil
	}
	dir, err := policy.Canonical(o.Dir)
	if err == nil && dir != root {
		err = &WorkspaceError{Log: o.Resume, Want: root, Got: dir}
	}
	return root, err
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

// begin creates the log and pins the permissions.
func (s *Session) begin(o *Options, root string) error {
	log, err := s.newLog(o.Log, o.Temporary, policy.Scope{Mode: o.Mode, Root: root, Extra: s.reach.extra}, nil)
	if err != nil {
		return err
	}
	by := o.By
	if by == "" {
		by = "embedder"
	}
	permissions, err := policy.Begin(log, o.Mode, o.Approval, by, &policy.Options{Presets: o.Presets, Preset: o.Preset, Admit: s.reach.admit})
	if err == nil {
		s.session, err = tools.NewSession(permissions)
	}
	if err != nil {
		return errors.Join(err, log.Close())
	}
	return nil
}

// newLog creates a log where calls with the scope cannot change it. An empty
// path means a new one in the user's state directory.
func (s *Session) newLog(path string, temporary bool, scope policy.Scope, parent *session.Parent) (log *session.Log, err error) {
	switch {
	case temporary && path != "":
		return nil, fmt.Errorf("a temporary log has no place, but %q was named for it", path)
	case temporary:
	case path == "":
		path, err = session.NewPath(time.Now())
	default:
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, err
	}
	s.reach.keepLog(path)
	if err := s.reach.check(scope); err != nil {
		return nil, err
	}
	if temporary {
		log, err = session.Temporary(scope.Root, parent)
	} else {
		log, err = session.Create(path, scope.Root, parent)
	}
	if err == nil {
		log.Redact(s.redactor)
	}
	return log, err
}

// engine is the session's own or the shared one.
func (s *Session) engine(o *Options) (runtime.Engine, error) {
	if o.Engine != nil {
		return o.Engine, nil
	}
	engine, release, err := sharedEngine()
	s.release = func() {
		s.local.Close()
		release()
	}
	return engine, err
}
