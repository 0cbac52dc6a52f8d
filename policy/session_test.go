package policy_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
)

var update = flag.Bool("update", false, "write the golden files anew")

func newLog(t *testing.T, parent *session.Parent) *session.Log {
	t.Helper()
	log, err := session.Create(filepath.Join(t.TempDir(), "s.jsonl"), "/w", parent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

func begin(t *testing.T, mode policy.Mode, approval policy.Approval) *policy.Session {
	t.Helper()
	s, err := policy.Begin(newLog(t, nil), mode, approval, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reopen closes the session's log and opens it again.
func reopen(t *testing.T, s *policy.Session) *session.Log {
	t.Helper()
	s.Log().Close()
	log, err := session.Open(s.Log().Path(), policy.Accept)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

// events lists the log as "type data" without what changes from run to run.
func events(t *testing.T, s *policy.Session) (list []string) {
	t.Helper()
	if err := s.Log().Replay(func(e session.Event) {
		if e.Type != session.Start {
			list = append(list, fmt.Sprintf("%s %s", e.Type, e.Data))
		}
	}); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestPermissionsAreFoldedFromTheLog(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	if err := s.SetPreset("workspace-write", "user"); err != nil {
		t.Fatal(err)
	}
	want := policy.State{Mode: policy.WorkspaceWrite, Approval: policy.Ask, Preset: "workspace-write", Root: "/w"}
	if got := s.State(); got != want {
		t.Errorf("state is %+v, want %+v", got, want)
	}
	again, err := policy.Resume(reopen(t, s), nil)
	if err != nil || again.State() != want {
		t.Errorf("resumed as %+v, %v", again.State(), err)
	}
}

func TestBeginningPinsThePairAndItsName(t *testing.T) {
	both, err := policy.NewPresetTable(policy.Preset{Name: "review", Mode: policy.ReadOnly, Approval: policy.Ask})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		mode     policy.Mode
		approval policy.Approval
		o        *policy.Options
		want     string
		events   int
	}{
		{"the first preset that fits", policy.ReadOnly, policy.Ask, nil, "read-only", 3},
		{"the one that was chosen among those that fit", policy.ReadOnly, policy.Ask, &policy.Options{Presets: both, Preset: "review"}, "review", 3},
		{"a chosen one that does not fit names nothing", policy.WorkspaceWrite, policy.Ask, &policy.Options{Presets: both, Preset: "review"}, "workspace-write", 3},
		{"a pair without a name is not logged as one", policy.ReadOnly, policy.Never, nil, policy.Custom, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := policy.Begin(newLog(t, nil), c.mode, c.approval, "test", c.o)
			if err != nil {
				t.Fatal(err)
			}
			if got := events(t, s); len(got) != c.events || s.State().Preset != c.want {
				t.Errorf("wrote %q, preset %q; want %d events and %q", got, s.State().Preset, c.events, c.want)
			}
		})
	}
}

func TestPermissionsBeginOnce(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	if _, err := policy.Begin(s.Log(), policy.DangerFullAccess, policy.Never, "test", nil); err == nil {
		t.Error("a session began twice")
	}
	if _, err := policy.Begin(newLog(t, nil), policy.Mode(7), policy.Never, "test", nil); err == nil {
		t.Error("a session began in a mode without a word")
	}
}

func TestAKnobWithAnUnknownValueIsNotResumed(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Never)
	if err := s.SetMode(policy.Mode(7), "test"); err == nil {
		t.Error("a value outside the vocabulary was logged")
	}
	if _, err := s.Log().Append(session.SandboxMode, map[string]string{"value": "everything", "by": "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := policy.Resume(s.Log(), nil); err == nil || !strings.Contains(err.Error(), "everything") {
		t.Errorf("resuming gave %v", err)
	}
	if mode := s.State().Mode; mode != policy.ReadOnly {
		t.Errorf("an unknown value set the mode to %v", mode)
	}
}

// A log with a knob that this program does not understand is refused before
// anything in it is changed.
func TestAccept(t *testing.T) {
	for _, c := range []struct {
		name  string
		event session.Type
		data  string
		ok    bool
	}{
		{"a known mode is taken", session.SandboxMode, `{"value":"read-only","by":"x"}`, true},
		{"an unknown mode is refused", session.SandboxMode, `{"value":"everything","by":"x"}`, false},
		{"a number is no mode", session.SandboxMode, `{"value":2,"by":"x"}`, false},
		{"null is no mode", session.SandboxMode, `{"value":null,"by":"x"}`, false},
		{"no value is no mode", session.SandboxMode, `{"by":"x"}`, false},
		{"a known policy is taken", session.ApprovalPolicy, `{"value":"ask","by":"x"}`, true},
		{"an unknown policy is refused", session.ApprovalPolicy, `{"value":"sometimes","by":"x"}`, false},
		{"a preset is a name and no knob", session.PermissionPreset, `{"value":"house-rules","by":"x"}`, true},
		{"a question is audit", session.ApprovalAsked, `{"id":7}`, true},
		{"other events are not judged", session.ToolCall, `[]`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t, policy.ReadOnly, policy.Ask)
			if _, err := s.Log().Append(c.event, json.RawMessage(c.data)); err != nil {
				t.Fatal(err)
			}
			s.Log().Close()
			before, err := os.ReadFile(s.Log().Path())
			if err != nil {
				t.Fatal(err)
			}
			log, err := session.Open(s.Log().Path(), policy.Accept)
			if err == nil {
				defer log.Close()
			}
			if readOnly := (*session.ReadOnlyError)(nil); (err == nil) != c.ok || !c.ok && !errors.As(err, &readOnly) {
				t.Errorf("opening gave %v", err)
			}
			if after, err := os.ReadFile(s.Log().Path()); err != nil || string(after) != string(before) {
				t.Errorf("the log was changed: %v", err)
			}
		})
	}
}

func TestANameThatTheTableDoesNotKnowIsNoError(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	if _, err := s.Log().Append(session.PermissionPreset, map[string]string{"value": "house-rules", "by": "x"}); err != nil {
		t.Fatal(err)
	}
	again, err := policy.Resume(reopen(t, s), nil)
	if err != nil || again.State().Preset != "read-only" {
		t.Errorf("resumed as %+v, %v", again.State(), err)
	}
}

func TestQuestionsWithoutAnAnswerAreClosedOnResume(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	answered := policy.NewApprovals(0)
	if _, err := answered.Ask(t.Context(), s, policy.Question{CallID: "c1"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a2", "a7"} {
		if _, err := s.Log().Append(session.ApprovalAsked, map[string]string{"id": id, "call_id": "c" + id}); err != nil {
			t.Fatal(err)
		}
	}
	before := len(events(t, s))
	again, err := policy.Resume(reopen(t, s), nil)
	if err != nil {
		t.Fatal(err)
	}
	closed := events(t, again)[before:]
	if len(closed) != 2 {
		t.Fatalf("appended %q, want the ends of a2 and a7", closed)
	}
	for i, id := range []string{"a2", "a7"} {
		for _, part := range []string{`approval/decided {"id":"` + id + `","call_id":"c` + id + `"`, `"outcome":"cancelled","by":""`, "ended before an answer"} {
			if !strings.Contains(closed[i], part) {
				t.Errorf("closed with %s, want %s in it", closed[i], part)
			}
		}
	}
	if _, err := answered.Ask(t.Context(), again, policy.Question{CallID: "c9"}); err != nil {
		t.Fatal(err)
	}
	next := events(t, again)[before+2]
	if !strings.Contains(next, `{"id":"a8"`) {
		t.Errorf("the next question is %s, want a8", next)
	}
	third, err := policy.Resume(reopen(t, again), nil)
	if err != nil || len(events(t, third)) != before+4 {
		t.Errorf("resumed again: %v, %q", err, events(t, third))
	}
}
