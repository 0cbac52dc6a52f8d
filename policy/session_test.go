package policy_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
)

var update = flag.Bool("update", false, "write the golden files anew")

func begin(t *testing.T, mode policy.Mode, approval policy.Approval) *policy.Session {
	t.Helper()
	log, err := session.Create(filepath.Join(t.TempDir(), "s.jsonl"), "/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	s, err := policy.Begin(log, mode, approval, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
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
	path := s.Log().Path()
	s.Log().Close()
	log, err := session.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	again, err := policy.Resume(log, nil)
	if err != nil || again.State() != want {
		t.Errorf("resumed as %+v, %v", again.State(), err)
	}
}

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

func TestAnswers(t *testing.T) {
	answer := func(o policy.Outcome, err error) policy.Answerer {
		return policy.Answerer{Name: "a", Answer: func(context.Context, policy.Question) (policy.Outcome, error) { return o, err }}
	}
	panics := policy.Answerer{Name: "p", Answer: func(context.Context, policy.Question) (policy.Outcome, error) { panic("boom") }}
	silent := policy.Answerer{Name: "s", Answer: func(ctx context.Context, _ policy.Question) (policy.Outcome, error) {
		<-ctx.Done()
		return policy.AllowedOnce, nil
	}}
	deaf := policy.Answerer{Name: "d", Answer: func(context.Context, policy.Question) (policy.Outcome, error) { select {} }}
	for _, c := range []struct {
		name      string
		approval  policy.Approval
		answerers []policy.Answerer
		want      policy.Outcome
		by        string
	}{
		{"yes grants", policy.Ask, []policy.Answerer{answer(policy.AllowedOnce, nil)}, policy.AllowedOnce, "a"},
		{"no refuses", policy.Ask, []policy.Answerer{answer(policy.Rejected, nil)}, policy.Rejected, "a"},
		{"the first that takes it owns it", policy.Ask, []policy.Answerer{answer(policy.Unavailable, nil), answer(policy.Rejected, nil), answer(policy.AllowedOnce, nil)}, policy.Rejected, "a"},
		{"nobody there is no yes", policy.Ask, nil, policy.Unavailable, ""},
		{"never asks nobody", policy.Never, []policy.Answerer{answer(policy.AllowedOnce, nil)}, policy.Rejected, "policy"},
		{"an error is no yes", policy.Ask, []policy.Answerer{answer(policy.AllowedOnce, errors.New("x"))}, policy.Unavailable, "a"},
		{"a panic is no yes", policy.Ask, []policy.Answerer{panics}, policy.Unavailable, "p"},
		{"a word outside the vocabulary is no yes", policy.Ask, []policy.Answerer{answer(policy.Outcome(9), nil)}, policy.Unavailable, "a"},
		{"a late yes is no yes", policy.Ask, []policy.Answerer{silent}, policy.Cancelled, ""},
		{"who ignores the deadline is not waited for", policy.Ask, []policy.Answerer{deaf}, policy.Cancelled, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := begin(t, policy.ReadOnly, c.approval)
			a := policy.NewApprovals(50*time.Millisecond, c.answerers...)
			before := len(events(t, s))
			d, err := a.Ask(t.Context(), s, policy.Question{CallID: "c1", Tool: "bash", Reason: "why", To: policy.WorkspaceWrite})
			if err != nil || d.Outcome != c.want || d.By != c.by {
				t.Errorf("decided %+v, %v; want %v by %q", d, err, c.want, c.by)
			}
			logged := events(t, s)[before:]
			if len(logged) != 2 || !strings.HasPrefix(logged[0], "approval/asked") ||
				!strings.Contains(logged[1], `"outcome":"`+c.want.String()+`"`) {
				t.Errorf("logged %q", logged)
			}
		})
	}
}

func TestAQuestionThatCannotBeLoggedIsNotAsked(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	asked := false
	a := policy.NewApprovals(0, policy.Answerer{Name: "a", Answer: func(context.Context, policy.Question) (policy.Outcome, error) {
		asked = true
		return policy.AllowedOnce, nil
	}})
	s.Log().Close()
	d, err := a.Ask(t.Context(), s, policy.Question{CallID: "c1"})
	if err == nil || asked || d.Outcome == policy.AllowedOnce {
		t.Errorf("without a log: asked %v, decided %+v, %v", asked, d, err)
	}
}

func TestCancellingWithdrawsTheQuestion(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	ctx, cancel := context.WithCancel(t.Context())
	a := policy.NewApprovals(0, policy.Answerer{Name: "a", Answer: func(ctx context.Context, _ policy.Question) (policy.Outcome, error) {
		cancel()
		<-ctx.Done()
		return policy.AllowedOnce, nil
	}})
	d, err := a.Ask(ctx, s, policy.Question{CallID: "c1"})
	if err != nil || d.Outcome != policy.Cancelled {
		t.Errorf("decided %+v, %v", d, err)
	}
}

func TestQuestionsArePutOneAfterAnother(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	open := make(chan struct{}, 1)
	a := policy.NewApprovals(0, policy.Answerer{Name: "a", Answer: func(context.Context, policy.Question) (policy.Outcome, error) {
		select {
		case open <- struct{}{}:
		default:
			return policy.Unavailable, errors.New("two questions at one time")
		}
		<-open
		return policy.AllowedOnce, nil
	}})
	results := make(chan policy.Decision, 20)
	for range 20 {
		go func() {
			d, _ := a.Ask(t.Context(), s, policy.Question{CallID: "c1"})
			results <- d
		}()
	}
	for range 20 {
		if d := <-results; d.Outcome != policy.AllowedOnce {
			t.Errorf("decided %+v", d)
		}
	}
}

// The paragraph for the model, for each pair of the knobs.
func TestDescribe(t *testing.T) {
	var got strings.Builder
	for _, mode := range []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite, policy.DangerFullAccess} {
		for _, approval := range []policy.Approval{policy.Ask, policy.Never} {
			fmt.Fprintf(&got, "%s, %s:\n%s\n\n", mode, approval, policy.Describe(policy.State{Mode: mode, Approval: approval, Root: "/w"}))
		}
	}
	golden := filepath.Join("testdata", "describe.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || got.String() != string(want) {
		t.Errorf("the paragraphs are not those of %s (%v; -update writes them):\n%s", golden, err, got.String())
	}
}
