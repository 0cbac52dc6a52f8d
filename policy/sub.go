package policy

import (
	"errors"
	"fmt"

	"github.com/dsh-run/dsh/session"
)

// SubOptions say what a sub-session may do, within what its parent may. Nil
// means all defaults.
type SubOptions struct {
	// Mode that is wanted. Default: nil, the parent's; a wider one than the
	// parent's becomes the parent's.
	Mode *Mode
	// Approval policy that is wanted; ask under a parent with never becomes
	// never. Default: never.
	Approval Approval
	// By says in the log who started it. Default: "parent".
	By string
	// Presets that name its pair. Default: nil, the parent's.
	Presets *PresetTable
}

// BeginSub pins the permissions of a sub-session that was just created: never
// wider than what parent may do now, without grants that were given for one
// call, and fixed from then on. The log names the parent and lies in the same
// workspace or below it.
func BeginSub(log *session.Log, parent *Session, o *SubOptions) (*Session, error) {
	options := SubOptions{}
	if o != nil {
		options = *o
	}
	if options.Presets == nil {
		options.Presets = parent.presets
	}
	s, err := follow(log, &Options{Presets: options.Presets})
	if err == nil {
		err = s.checkParent(parent)
	}
	if err == nil {
		err = s.beginWithin(parent.State(), options)
	}
	if err != nil {
		return nil, fmt.Errorf("begin the permissions of sub-session %s: %w", log.ID(), err)
	}
	return s, nil
}

func (s *Session) beginWithin(parent State, o SubOptions) error {
	mode := parent.Mode
	if o.Mode != nil {
		if err := checkMode(*o.Mode); err != nil {
			return err
		}
		mode = min(mode, *o.Mode)
	}
	if err := checkApproval(o.Approval); err != nil {
		return err
	}
	if o.By == "" {
		o.By = "parent"
	}
	var tree *Worktree // never wider than the parent's
	if s.State().Root == parent.Root {
		tree = parent.Worktree
	}
	return s.begin(mode, min(parent.Approval, o.Approval), "", o.By, tree)
}

// checkParent says why the log is not that of a sub-session of parent.
func (s *Session) checkParent(parent *Session) error {
	p, root := s.fold.parent, s.fold.state.Root
	last, above := parent.last()
	switch {
	case p == nil || !p.Sub:
		return errors.New("its log does not say that it is a sub-session")
	case p.ID != parent.log.ID():
		return fmt.Errorf("its log names the parent %q, but the parent is %q", p.ID, parent.log.ID())
	case p.Seq == 0 || p.Seq > last:
		return fmt.Errorf("its log names event %d of the parent, which has %d", p.Seq, last)
	case !Within(above, root):
		return fmt.Errorf("its workspace %s lies outside of the parent's, %s", root, above)
	}
	return nil
}

// last is the number of the last event, and the root.
func (s *Session) last() (seq uint64, root string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fold.seq, s.fold.state.Root
}
