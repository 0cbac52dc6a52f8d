package policy_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
)

// subLog is a new log of a sub-session in cwd.
func subLog(t *testing.T, parent session.Parent, cwd string) *session.Log {
	t.Helper()
	log, err := session.Create(filepath.Join(t.TempDir(), "sub.jsonl"), cwd, &parent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

func TestASubSessionIsNeverWiderThanItsParent(t *testing.T) {
	mode := func(m policy.Mode) *policy.Mode { return &m }
	for _, c := range []struct {
		name     string
		mode     policy.Mode
		approval policy.Approval
		o        *policy.SubOptions
		want     policy.Mode
		answers  policy.Approval
	}{
		{"without a wish: the parent's mode and never", policy.WorkspaceWrite, policy.Ask, nil, policy.WorkspaceWrite, policy.Never},
		{"a narrower mode is granted", policy.WorkspaceWrite, policy.Ask, &policy.SubOptions{Mode: mode(policy.ReadOnly)}, policy.ReadOnly, policy.Never},
		{"a wider mode is the parent's", policy.ReadOnly, policy.Ask, &policy.SubOptions{Mode: mode(policy.DangerFullAccess)}, policy.ReadOnly, policy.Never},
		{"ask is granted under ask", policy.ReadOnly, policy.Ask, &policy.SubOptions{Approval: policy.Ask}, policy.ReadOnly, policy.Ask},
		{"ask is not granted under never", policy.DangerFullAccess, policy.Never, &policy.SubOptions{Approval: policy.Ask}, policy.DangerFullAccess, policy.Never},
	} {
		t.Run(c.name, func(t *testing.T) {
			parent := begin(t, c.mode, c.approval)
			log := subLog(t, session.Parent{ID: "s", Seq: 2, Sub: true}, "/w/below")
			s, err := policy.BeginSub(log, parent, c.o)
			if err != nil {
				t.Fatal(err)
			}
			again, err := policy.Resume(reopen(t, s), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range []policy.State{s.State(), again.State()} {
				if got.Mode != c.want || got.Approval != c.answers || !got.Fixed {
					t.Errorf("may do %+v, want %v and %v, fixed", got, c.want, c.answers)
				}
			}
		})
	}
}

func TestASubSessionStartsFromTheParentsPresentMode(t *testing.T) {
	parent := begin(t, policy.DangerFullAccess, policy.Ask)
	log := subLog(t, session.Parent{ID: "s", Seq: 3, Sub: true}, "/w")
	if err := parent.SetMode(policy.ReadOnly, "user"); err != nil {
		t.Fatal(err)
	}
	s, err := policy.BeginSub(log, parent, nil)
	if err != nil || s.State().Mode != policy.ReadOnly {
		t.Errorf("began as %+v, %v", s.State(), err)
	}
}

func TestTheScopeOfASubSessionIsFixed(t *testing.T) {
	parent := begin(t, policy.WorkspaceWrite, policy.Ask)
	s, err := policy.BeginSub(subLog(t, session.Parent{ID: "s", Seq: 1, Sub: true}, "/w"), parent, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := len(events(t, s))
	for name, set := range map[string]func() error{
		"a narrower mode": func() error { return s.SetMode(policy.ReadOnly, "user") },
		"the same mode":   func() error { return s.SetMode(policy.WorkspaceWrite, "user") },
		"a policy":        func() error { return s.SetApproval(policy.Ask, "user") },
		"a preset":        func() error { return s.SetPreset("read-only", "user") },
	} {
		if err := set(); !errors.As(err, new(*policy.FixedError)) {
			t.Errorf("%s: %v, want a FixedError", name, err)
		}
	}
	if got := events(t, s)[before:]; len(got) != 0 {
		t.Errorf("wrote %q", got)
	}
}

func TestALogThatIsNotTheSubSessionsOfThisParentIsRefused(t *testing.T) {
	parent := begin(t, policy.WorkspaceWrite, policy.Ask)
	for _, c := range []struct {
		name string
		log  *session.Log
		why  string
	}{
		{"a session without a parent", newLog(t, nil), "does not say that it is a sub-session"},
		{"a fork", subLog(t, session.Parent{ID: "s", Seq: 1}, "/w"), "does not say that it is a sub-session"},
		{"another parent's", subLog(t, session.Parent{ID: "other", Seq: 1, Sub: true}, "/w"), `the parent "other"`},
		{"an event that the parent does not have", subLog(t, session.Parent{ID: "s", Seq: 99, Sub: true}, "/w"), "event 99"},
		{"a workspace above the parent's", subLog(t, session.Parent{ID: "s", Seq: 1, Sub: true}, "/"), "outside of the parent's"},
		{"a workspace beside the parent's", subLog(t, session.Parent{ID: "s", Seq: 1, Sub: true}, "/w2"), "outside of the parent's"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := policy.BeginSub(c.log, parent, nil); err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("beginning gave %v, want one with %q", err, c.why)
			}
		})
	}
	log := subLog(t, session.Parent{ID: "s", Seq: 1, Sub: true}, "/w")
	if _, err := policy.Begin(log, policy.DangerFullAccess, policy.Never, "test", nil); err == nil {
		t.Error("a sub-session began without its parent")
	}
}
