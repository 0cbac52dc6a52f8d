package policy_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
)

func TestSwitchingWritesOnlyWhatChanges(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	before := len(events(t, s))
	if err := s.SetPreset("workspace-write", "user"); err != nil {
		t.Fatal(err)
	}
	got := events(t, s)[before:]
	if len(got) != 2 || !strings.HasPrefix(got[0], "sandbox/mode") || !strings.HasPrefix(got[1], "permission/preset") {
		t.Errorf("wrote %q", got)
	}
	if err := s.SetMode(policy.DangerFullAccess, "user"); err != nil {
		t.Fatal(err)
	}
	if preset := s.State().Preset; preset != policy.Custom {
		t.Errorf("a pair that no preset names is called %q", preset)
	}
}

func TestAValueOutsideTheVocabularyIsRefusedBeforeAnythingIsLogged(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	before := len(events(t, s))
	for name, set := range map[string]func() error{
		"a mode":             func() error { return s.SetMode(policy.Mode(7), "user") },
		"a policy":           func() error { return s.SetApproval(policy.Approval(7), "user") },
		"an unknown preset":  func() error { return s.SetPreset("house-rules", "user") },
		"the derived preset": func() error { return s.SetPreset(policy.Custom, "user") },
	} {
		if err := set(); !errors.As(err, new(*policy.WordError)) {
			t.Errorf("%s: %v, want a WordError", name, err)
		}
	}
	if got := events(t, s)[before:]; len(got) != 0 {
		t.Errorf("wrote %q", got)
	}
}

func TestTheChosenNameIsRememberedWhereTwoShareAPair(t *testing.T) {
	table, err := policy.NewPresetTable(policy.Preset{Name: "review", Mode: policy.ReadOnly, Approval: policy.Ask})
	if err != nil {
		t.Fatal(err)
	}
	s, err := policy.Begin(newLog(t, nil), policy.ReadOnly, policy.Ask, "test", &policy.Options{Presets: table})
	if err != nil {
		t.Fatal(err)
	}
	before := len(events(t, s))
	if err := s.SetPreset("review", "user"); err != nil || s.State().Preset != "review" {
		t.Errorf("chose %q, %v", s.State().Preset, err)
	}
	if got := events(t, s)[before:]; len(got) != 1 || got[0] != `permission/preset {"value":"review","by":"user"}` {
		t.Errorf("wrote %q, want the name alone", got)
	}
	again, err := policy.Resume(reopen(t, s), &policy.Options{Presets: table})
	if err != nil || again.State().Preset != "review" {
		t.Errorf("resumed as %q, %v", again.State().Preset, err)
	}
}

// What a preset writes is never mixed with what another setter writes.
func TestAPresetIsOneStep(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	before := len(events(t, s))
	var all sync.WaitGroup
	for range 20 {
		for _, name := range []string{"read-only", "danger-full-access"} {
			all.Go(func() {
				if err := s.SetPreset(name, name); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	by := ""
	for _, e := range events(t, s)[before:] {
		if by != "" && !strings.HasSuffix(e, `"by":"`+by+`"}`) {
			t.Fatalf("%s stands inside of the step of %s", e, by)
		}
		by = ""
		if !strings.HasPrefix(e, string(session.PermissionPreset)) {
			_, by, _ = strings.Cut(strings.TrimSuffix(e, `"}`), `"by":"`)
		}
	}
}

func TestAPresetThatCannotBeWrittenSaysWhatWas(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	s.Log().Close()
	err := s.SetPreset("danger-full-access", "user")
	var partly *policy.PresetWriteError
	if !errors.As(err, &partly) || len(partly.Written) != 0 || partly.Failed != session.SandboxMode || !errors.Is(err, session.ErrClosed) {
		t.Errorf("the error is %v", err)
	}
}

func TestAnErrorInTheMiddleNamesWhatIsInEffect(t *testing.T) {
	err := &policy.PresetWriteError{Preset: "p", Failed: session.PermissionPreset, Err: session.ErrClosed,
		Written: slices.Clip([]session.Type{session.SandboxMode, session.ApprovalPolicy})}
	want := "preset p: permission/preset could not be written, sandbox/mode and approval/policy was: the session log is closed"
	if err.Error() != want {
		t.Errorf("it says %q", err)
	}
}
