package policy_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
)

var errReached = errors.New("the log lies there")

// upTo admits modes that are not wider than widest.
func upTo(widest policy.Mode) func(policy.Scope) error {
	return func(s policy.Scope) error {
		if s.Root == "/w" && s.Mode <= widest {
			return nil
		}
		return errReached
	}
}

func TestAModeThatIsNotAdmittedIsRefusedBeforeAnythingIsLogged(t *testing.T) {
	s, err := policy.Begin(newLog(t, nil), policy.ReadOnly, policy.Ask, "test", &policy.Options{Admit: upTo(policy.ReadOnly)})
	if err != nil {
		t.Fatal(err)
	}
	before := events(t, s)
	for name, set := range map[string]func() error{
		"a mode":   func() error { return s.SetMode(policy.WorkspaceWrite, "user") },
		"a preset": func() error { return s.SetPreset("workspace-write", "user") },
		"going on": func() error {
			if _, err := s.Log().Append(session.ApprovalAsked, map[string]string{"id": "a1", "call_id": "c1"}); err != nil {
				return err
			}
			before = events(t, s)
			_, err := policy.Resume(s.Log(), &policy.Options{Admit: upTo(policy.ReadOnly), Turn: to(policy.WorkspaceWrite, policy.Ask, "")})
			return err
		},
		"going on with what the log says": func() error {
			_, err := policy.Resume(s.Log(), &policy.Options{Admit: func(policy.Scope) error { return errReached }})
			return err
		},
	} {
		if err := set(); !errors.Is(err, errReached) {
			t.Errorf("%s: %v, want the reason why it is not admitted", name, err)
		}
		if got := events(t, s); !slices.Equal(got, before) {
			t.Errorf("%s: wrote %q", name, got[len(before):])
		}
	}
	log := newLog(t, nil)
	if _, err := policy.Begin(log, policy.WorkspaceWrite, policy.Ask, "test", &policy.Options{Admit: upTo(policy.ReadOnly)}); !errors.Is(err, errReached) || log.Seq() != 1 {
		t.Errorf("a beginning: %v, and the log has %d events", err, log.Seq())
	}
}

// to is a turn to those knobs.
func to(mode policy.Mode, approval policy.Approval, preset string) func(policy.State) (policy.State, error) {
	return func(now policy.State) (policy.State, error) {
		now.Mode, now.Approval, now.Preset = mode, approval, preset
		return now, nil
	}
}

func TestGoingOnWritesOnlyWhatTurns(t *testing.T) {
	table, err := policy.NewPresetTable(policy.Preset{Name: "review", Mode: policy.ReadOnly, Approval: policy.Ask})
	if err != nil {
		t.Fatal(err)
	}
	mode, approval := `sandbox/mode {"value":"danger-full-access","by":"user"}`, `approval/policy {"value":"never","by":"user"}`
	for _, c := range []struct {
		name string
		turn func(policy.State) (policy.State, error)
		want []string
	}{
		{"nothing turns by itself", nil, nil},
		{"the same again is not written", to(policy.ReadOnly, policy.Ask, "read-only"), nil},
		{"one knob", to(policy.ReadOnly, policy.Never, "read-only"), []string{approval}},
		{"both knobs name their preset", to(policy.DangerFullAccess, policy.Never, "danger-full-access"), []string{mode, approval}},
		{"a preset that does not fit is not written", to(policy.DangerFullAccess, policy.Never, "review"), []string{mode, approval}},
		{"another name of the same pair", to(policy.ReadOnly, policy.Ask, "review"), []string{`permission/preset {"value":"review","by":"user"}`}},
		{"the derived name is never written", to(policy.ReadOnly, policy.Never, policy.Custom), []string{approval}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t, policy.ReadOnly, policy.Ask)
			before := len(events(t, s))
			again, err := policy.Resume(reopen(t, s), &policy.Options{Presets: table, Turn: c.turn, By: "user"})
			if err != nil {
				t.Fatal(err)
			}
			if got := events(t, again)[before:]; !slices.Equal(got, c.want) {
				t.Errorf("wrote %q, want %q", got, c.want)
			}
		})
	}
}

func TestATurnThatCannotBeIsRefused(t *testing.T) {
	parent := begin(t, policy.WorkspaceWrite, policy.Ask)
	sub, err := policy.BeginSub(subLog(t, session.Parent{ID: "s", Seq: 1, Sub: true}, "/w"), parent, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		log  *session.Log
		turn func(policy.State) (policy.State, error)
		want any
	}{
		{"no mode", parent.Log(), to(policy.Mode(7), policy.Ask, ""), new(*policy.WordError)},
		{"no policy", parent.Log(), to(policy.ReadOnly, policy.Approval(7), ""), new(*policy.WordError)},
		{"a narrower mode of a sub-session", sub.Log(), to(policy.ReadOnly, policy.Never, ""), new(*policy.FixedError)},
	} {
		before := c.log.Seq()
		if _, err := policy.Resume(c.log, &policy.Options{Turn: c.turn}); !errors.As(err, c.want) || c.log.Seq() != before {
			t.Errorf("%s: %v, want a %T", c.name, err, c.want)
		}
	}
}
