package dsh

import (
	"context"
	"errors"
	"slices"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// SubOptions of a sub-session. Nil means all defaults.
type SubOptions struct {
	// View says which tools of the parent it has, and which besides.
	// Default: those of the parent.
	View []tools.ViewOption
	// Mode, if it is narrower than the parent's. Default: nil, the parent's at
	// this moment.
	Mode *policy.Mode
	// Approval, if the parent asks as well. Default: never.
	Approval policy.Approval
	// Log and Temporary are those of Options.
	Log       string
	Temporary bool
	// By says in the log who started it. Default: "parent".
	By string
}

// Sub starts a session for a sub-agent, in the same workspace and behind the
// same stages, with its own log and jobs. It may do what its parent may at this
// moment or less, its scope does not change afterwards, and no grant for one
// call of the parent is one for it. It ends with Close, with ctx, or with its
// parent, whose Close waits for it.
//
// Errors: ErrClosed; *ReachError; those of [session.Create] for the log.
func (s *Session) Sub(ctx context.Context, o *SubOptions) (*Session, error) {
	options := SubOptions{}
	if o != nil {
		options = *o
	}
	view := s.Registry.View(options.View...)
	ctx, done, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	sub := &Session{
		Registry: view, local: s.local, full: s.full, release: done,
		reach: reach{extra: s.reach.extra, files: s.reach.files, log: slices.Clone(s.reach.log)}, redactor: s.redactor,
	}
	if err := sub.beginSub(s, options); err != nil {
		return nil, errors.Join(err, sub.end())
	}
	sub.Registry.Guard("reach", sub.reach.guard)
	sub.live(ctx)
	return sub, nil
}

func (s *Session) beginSub(parent *Session, o SubOptions) error {
	state := parent.Permissions().State()
	log, err := s.newLog(o.Log, o.Temporary, policy.Scope{Mode: state.Mode, Root: state.Root, Extra: s.reach.extra},
		&session.Parent{ID: parent.Log().ID(), Seq: parent.Log().Seq(), Sub: true})
	if err != nil {
		return err
	}
	permissions, err := policy.BeginSub(log, parent.Permissions(), &policy.SubOptions{Mode: o.Mode, Approval: o.Approval, By: o.By})
	if err == nil {
		s.session, err = tools.NewSession(permissions)
	}
	if err != nil {
		return errors.Join(err, log.Close())
	}
	return nil
}
