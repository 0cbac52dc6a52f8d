package policy_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
)

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
			logged := slices.DeleteFunc(events(t, s)[before:], func(e string) bool {
				return strings.HasPrefix(e, "approval/late") // whenever it comes
			})
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

// one is a chain of one answerer.
func one(f func(context.Context, policy.Question) (policy.Outcome, error)) *policy.Approvals {
	return policy.NewApprovals(0, policy.Answerer{Name: "a", Answer: f})
}

func TestTheQuestionIsDurableBeforeAnyoneSeesIt(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	a := one(func(_ context.Context, q policy.Question) (policy.Outcome, error) {
		list := events(t, s)
		want := `approval/asked {"id":"a1","call_id":"c1","tool":"bash","reason":"<why> \u001b","mode":"read-only","to":"workspace-write","confined":true,"denied_call":"c0","preview":"+ x","approval":"ask"}`
		if last := list[len(list)-1]; last != want {
			t.Errorf("logged %s\nwant   %s", last, want)
		}
		if q.Session != s.Log().ID() || q.ID != "a1" {
			t.Errorf("the question is %q of %q", q.ID, q.Session)
		}
		return policy.AllowedOnce, nil
	})
	q := policy.Question{CallID: "c1", Tool: "bash", Reason: "<why> \x1b", To: policy.WorkspaceWrite, Confined: true, Denied: "c0", Preview: "+ x"}
	if d, err := a.Ask(t.Context(), s, q); err != nil || d.Outcome != policy.AllowedOnce {
		t.Errorf("decided %+v, %v", d, err)
	}
}

func TestALongPreviewIsABlob(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	before := len(events(t, s))
	if _, err := policy.NewApprovals(0).Ask(t.Context(), s, policy.Question{CallID: "c1", Preview: strings.Repeat("x", 1<<20)}); err != nil {
		t.Fatal(err)
	}
	if e := events(t, s)[before]; len(e) > 1000 || !strings.Contains(e, `"preview_ref":{"sha256":`) {
		t.Errorf("logged %.300s", e)
	}
}

func TestAnAnswerThatCannotBeLoggedGrantsNothing(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	a := one(func(context.Context, policy.Question) (policy.Outcome, error) {
		return policy.AllowedOnce, s.Log().Close()
	})
	d, err := a.Ask(t.Context(), s, policy.Question{CallID: "c1"})
	if !errors.Is(err, session.ErrClosed) || d.Outcome != policy.Unavailable {
		t.Errorf("decided %+v, %v", d, err)
	}
}

// An answer after the end of its question is logged and does not count.
func TestLateAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer policy.Outcome
		err    error
		late   string
	}{
		{"a yes", policy.AllowedOnce, nil, `approval/late {"id":"a1","call_id":"c1","outcome":"allowed-once","by":"a","duration_ms":1500}`},
		{"a no", policy.Rejected, nil, `approval/late {"id":"a1","call_id":"c1","outcome":"rejected","by":"a","duration_ms":1500}`},
		{"a withdrawal is no answer", policy.Cancelled, nil, ""},
		{"an error is no answer", policy.AllowedOnce, errors.New("x"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := begin(t, policy.ReadOnly, policy.Ask)
				ctx, cancel := context.WithCancel(t.Context())
				release := make(chan struct{})
				a := one(func(context.Context, policy.Question) (policy.Outcome, error) {
					cancel()
					<-release
					return c.answer, c.err
				})
				d, err := a.Ask(ctx, s, policy.Question{CallID: "c1"})
				if err != nil || d.Outcome != policy.Cancelled {
					t.Errorf("decided %+v, %v", d, err)
				}
				before := len(events(t, s))
				<-time.After(1500 * time.Millisecond)
				close(release)
				synctest.Wait()
				if got := strings.Join(events(t, s)[before:], "\n"); got != c.late {
					t.Errorf("logged %s, want %s", got, c.late)
				}
			})
		})
	}
}

func TestALateAnswerToAClosedLogIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, policy.ReadOnly, policy.Ask)
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		a := one(func(context.Context, policy.Question) (policy.Outcome, error) {
			cancel()
			<-release
			return policy.AllowedOnce, nil
		})
		if _, err := a.Ask(ctx, s, policy.Question{CallID: "c1"}); err != nil {
			t.Fatal(err)
		}
		s.Log().Close()
		close(release)
		synctest.Wait()
		again, err := policy.Resume(reopen(t, s), nil)
		if err != nil {
			t.Fatal(err)
		}
		if list := events(t, again); !strings.HasPrefix(list[len(list)-1], "approval/decided") {
			t.Errorf("logged %q", list)
		}
	})
}

// Questions are put in the order of their numbers, whoever asks.
func TestTheQueueIsFirstComeFirstServed(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	arrived := make(chan string, 100)
	if err := s.Log().Follow(func(e session.Event) {
		if e.Type == session.ApprovalAsked {
			arrived <- string(e.Data)
		}
	}); err != nil {
		t.Fatal(err)
	}
	var order []string
	first := make(chan struct{})
	a := one(func(_ context.Context, q policy.Question) (policy.Outcome, error) {
		if len(order) == 0 {
			<-first
		}
		order = append(order, q.ID)
		return policy.AllowedOnce, nil
	})
	done := make(chan error, 10)
	var want []string
	for i := range 10 {
		go func() {
			_, err := a.Ask(t.Context(), s, policy.Question{CallID: "c1"})
			done <- err
		}()
		<-arrived
		want = append(want, fmt.Sprintf("a%d", i+1))
	}
	close(first)
	for range 10 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(order, want) {
		t.Errorf("put in the order %v", order)
	}
}

// The deadline of a question does not run while those before it are open.
func TestTheDeadlineRunsFromWhenTheQuestionIsPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, policy.ReadOnly, policy.Ask)
		a := policy.NewApprovals(time.Minute, policy.Answerer{Name: "a", Answer: func(ctx context.Context, q policy.Question) (policy.Outcome, error) {
			if q.CallID == "blocks" {
				<-ctx.Done()
				return policy.Unavailable, ctx.Err()
			}
			if end, ok := ctx.Deadline(); !ok || time.Until(end) != time.Minute {
				t.Errorf("the second question has %v left", time.Until(end))
			}
			return policy.AllowedOnce, nil
		}})
		first := make(chan policy.Decision, 1)
		go func() {
			d, _ := a.Ask(t.Context(), s, policy.Question{CallID: "blocks"})
			first <- d
		}()
		synctest.Wait()
		d, err := a.Ask(t.Context(), s, policy.Question{CallID: "waits"})
		if err != nil || d.Outcome != policy.AllowedOnce {
			t.Errorf("the second was decided %+v, %v", d, err)
		}
		if d := <-first; d.Outcome != policy.Cancelled || d.Why != "nobody answered within 1m0s" {
			t.Errorf("the first was decided %+v", d)
		}
	})
}

func TestWhoIsSwitchedOffWhileAQuestionWaitsIsNotAsked(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	put, release := make(chan string, 2), make(chan struct{})
	a := one(func(_ context.Context, q policy.Question) (policy.Outcome, error) {
		put <- q.CallID
		<-release
		return policy.AllowedOnce, nil
	})
	go a.Ask(t.Context(), s, policy.Question{CallID: "first"})
	<-put
	asked := make(chan struct{})
	if err := s.Log().Follow(func(e session.Event) {
		if e.Type == session.ApprovalAsked && strings.Contains(string(e.Data), "second") {
			close(asked)
		}
	}); err != nil {
		t.Fatal(err)
	}
	second := make(chan policy.Decision, 1)
	go func() {
		d, _ := a.Ask(t.Context(), s, policy.Question{CallID: "second"})
		second <- d
	}()
	<-asked
	if err := s.SetApproval(policy.Never, "user"); err != nil {
		t.Fatal(err)
	}
	close(release)
	if d := <-second; d.Outcome != policy.Rejected || d.By != "policy" || len(put) != 0 {
		t.Errorf("decided %+v; %d more questions were put", d, len(put))
	}
}

func TestAWithdrawnQuestionLeavesTheQueue(t *testing.T) {
	s := begin(t, policy.ReadOnly, policy.Ask)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	called := false
	a := one(func(context.Context, policy.Question) (policy.Outcome, error) {
		called = true
		return policy.AllowedOnce, nil
	})
	if d, err := a.Ask(ctx, s, policy.Question{CallID: "c1"}); err != nil || d.Outcome != policy.Cancelled || called {
		t.Errorf("decided %+v, %v; an answerer was called: %v", d, err, called)
	}
	if d, err := a.Ask(t.Context(), s, policy.Question{CallID: "c2"}); err != nil || d.Outcome != policy.AllowedOnce {
		t.Errorf("the next question was decided %+v, %v", d, err)
	}
}
