package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// answers is an approval service with one answerer.
func answers(f func(policy.Question) (policy.Outcome, error)) *policy.Approvals {
	return policy.NewApprovals(0, policy.Answerer{Name: "stub",
		Answer: func(_ context.Context, q policy.Question) (policy.Outcome, error) { return f(q) }})
}

// always gives one answer.
func always(o policy.Outcome, err error) *policy.Approvals {
	return answers(func(policy.Question) (policy.Outcome, error) { return o, err })
}

// keeps says yes and keeps the questions.
func keeps(questions *[]policy.Question) *policy.Approvals {
	return answers(func(q policy.Question) (policy.Outcome, error) {
		*questions = append(*questions, q)
		return policy.AllowedOnce, nil
	})
}

type changeArgs struct {
	What          string  `json:"what,omitempty"`
	TimeoutMS     int     `json:"timeout_ms,omitempty"`
	Description   string  `json:"description,omitempty"`
	Permissions   *string `json:"sandbox_permissions,omitempty"`
	Justification *string `json:"justification,omitempty"`
}

// change is a confined tool that can be widened.
func change(name string, run func(*tools.Call) error) tools.Tool {
	t := tools.New(tools.Tool{Name: name, Description: "changes", Confined: true},
		func(_ context.Context, call *tools.Call, _ changeArgs) (string, error) { return "ok", run(call) })
	t.Widen = func(args json.RawMessage) (*policy.Widening, error) {
		var in changeArgs
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		return policy.ParseWidening(in.Permissions, in.Justification)
	}
	return t
}

// refuses is the body of a tool whose narrow calls the sandbox denies.
func refuses(call *tools.Call) error {
	denied := call.Mode < policy.DangerFullAccess
	call.Confine(policy.Confinement{Mode: call.Mode, Denied: denied})
	if denied {
		return errors.New("denied by the sandbox")
	}
	return nil
}

func (r *road) change(t *testing.T, tool, args string) tools.Result {
	t.Helper()
	return r.Call(t.Context(), tools.Request{Tool: tool, Args: json.RawMessage(args), Session: r.session})
}

// The widening arguments, in front of more.
const wide = `{"sandbox_permissions":"danger-full-access","justification":"the task needs it"`

// The nine cases of a widening, in the order in which they are checked.
func TestWideningNineCases(t *testing.T) {
	panics := answers(func(policy.Question) (policy.Outcome, error) { panic("kaboom") })
	yes := always(policy.AllowedOnce, nil)
	const denied = tools.StageApproval
	for _, c := range []struct {
		name      string
		approvals *policy.Approvals
		approval  policy.Approval
		noSession bool
		target    string
		code      tools.Code // empty: it runs
		message   string
		decided   string // the outcome and who, in the log; empty: nobody was asked
		rule      string
	}{
		{"1 the same mode: nobody is asked", yes, policy.Ask, false, "workspace-write", tools.InvalidArgs,
			"sandbox_permissions is workspace-write, but this call already runs in workspace-write; only a wider mode can be asked for", "", ""},
		{"1 a narrower mode: nobody is asked", yes, policy.Ask, false, "read-only", tools.InvalidArgs,
			"sandbox_permissions is read-only, but this call already runs in workspace-write; only a wider mode can be asked for", "", ""},
		{"1 comes before 2 and 3", nil, policy.Ask, true, "read-only", tools.InvalidArgs,
			"sandbox_permissions is read-only, but this call already runs in read-only; only a wider mode can be asked for", "", ""},
		{"2 no approval service", nil, policy.Ask, false, "danger-full-access", tools.ApprovalUnavailable,
			"refused: the call needs an approval, and there is no approval service", "", ""},
		{"2 comes before 3", nil, policy.Ask, true, "danger-full-access", tools.ApprovalUnavailable,
			"refused: the call needs an approval, and there is no approval service", "", ""},
		{"3 no session", yes, policy.Ask, true, "danger-full-access", tools.ApprovalUnavailable,
			"refused: the call needs an approval, and it has no session to route the question through", "", ""},
		{"4 allowed once: it runs in the mode", yes, policy.Ask, false, "danger-full-access", "", "", "allowed-once stub", ""},
		{"5 rejected by a person", always(policy.Rejected, nil), policy.Ask, false, "danger-full-access", tools.ApprovalRejected,
			"refused: the user said no. It is final for this call; do not repeat it", "rejected stub", "stub"},
		{"5 rejected by never, whatever an answerer says", yes, policy.Never, false, "danger-full-access", tools.ApprovalRejected,
			"refused: approvals are off in this session, no person was asked", "rejected policy", "policy"},
		{"6 cancelled", always(policy.Cancelled, nil), policy.Ask, false, "danger-full-access", tools.ApprovalCancelled,
			"refused: the question was withdrawn", "cancelled stub", "stub"},
		{"7 nobody takes it", always(policy.Unavailable, nil), policy.Ask, false, "danger-full-access", tools.ApprovalUnavailable,
			"refused: the call needs an approval, and nobody could give it: no answerer took the question", "unavailable ", ""},
		{"7 nobody is there", policy.NewApprovals(0), policy.Ask, false, "danger-full-access", tools.ApprovalUnavailable,
			"refused: the call needs an approval, and nobody could give it: no answerer took the question", "unavailable ", ""},
		{"8 the answerer errs", always(policy.AllowedOnce, errors.New("boom")), policy.Ask, false, "danger-full-access", tools.ApprovalUnavailable,
			"refused: the call needs an approval, and nobody could give it: boom", "unavailable stub", "stub"},
		{"8 the answerer panics", panics, policy.Ask, false, "danger-full-access", tools.ApprovalUnavailable,
			"refused: the call needs an approval, and nobody could give it: the answerer panicked: kaboom", "unavailable stub", "stub"},
		{"9 a word outside the vocabulary", always(policy.Outcome(77), nil), policy.Ask, false, "danger-full-access", tools.ApprovalUnavailable,
			"refused: the call needs an approval, and nobody could give it: the answer invalid(77) is not in the vocabulary", "unavailable stub", "stub"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoad(t, c.approval, &tools.Options{Approvals: c.approvals})
			var ranIn []policy.Mode
			r.Add(change("change", func(call *tools.Call) error { ranIn = append(ranIn, call.Mode); return nil }))
			req := tools.Request{Tool: "change", Session: r.session,
				Args: json.RawMessage(`{"sandbox_permissions":"` + c.target + `","justification":"to test it"}`)}
			if c.noSession {
				req.Session, req.ID = nil, "x"
			}
			before := r.session.State()
			result := r.Call(t.Context(), req)
			r.wasDecided(t, c.decided)
			if now := r.session.State(); now != before {
				t.Errorf("the session may do %+v now", now)
			}
			if c.code == "" {
				if result.Error != nil || !slices.Equal(ranIn, []policy.Mode{policy.DangerFullAccess}) {
					t.Errorf("error %v, ran in %v; want it to run once with full access", result.Error, ranIn)
				}
				return
			}
			if len(ranIn) != 0 || result.Error == nil || result.Error.Code != c.code || result.Error.Message != c.message {
				t.Errorf("ran in %v, error %v; want nothing to run and %s: %s", ranIn, result.Error, c.code, c.message)
			}
			if by := result.Meta.DeniedBy; by == nil || *by != (tools.DeniedBy{Stage: denied, Rule: c.rule}) {
				t.Errorf("denied by %+v, want the rule %q of the approval", by, c.rule)
			}
			if !c.noSession {
				r.wasDeniedBy(t, c.rule)
			}
		})
	}
}

// wasDecided checks that the log has one audit pair that ends so, or none.
func (r *road) wasDecided(t *testing.T, want string) {
	t.Helper()
	asked, decided := r.events(t, session.ApprovalAsked), r.events(t, session.ApprovalDecided)
	n := min(1, len(want))
	if len(asked) != n || len(decided) != n {
		t.Fatalf("%d asked and %d decided, want %d", len(asked), len(decided), n)
	}
	if n == 0 {
		return
	}
	if got := fmt.Sprint(decided[0]["outcome"], " ", decided[0]["by"]); got != want || asked[0]["id"] != decided[0]["id"] {
		t.Errorf("question %v, decided %v as %q; want %q", asked[0]["id"], decided[0]["id"], got, want)
	}
	if asked[0]["mode"] != "workspace-write" || asked[0]["to"] != "danger-full-access" || asked[0]["reason"] != "to test it" ||
		asked[0]["confined"] != true || asked[0]["denied_call"] != nil {
		t.Errorf("asked %v", asked[0])
	}
}

// wasDeniedBy checks the end of the one call in the log.
func (r *road) wasDeniedBy(t *testing.T, rule string) {
	t.Helper()
	results := r.events(t, session.ToolResult)
	if len(results) != 1 {
		t.Fatalf("%d tool/result, want 1", len(results))
	}
	want := map[string]any{"stage": "approval"}
	if rule != "" {
		want["rule"] = rule
	}
	if got, _ := json.Marshal(results[0]["denied_by"]); string(got) != jsonOf(t, want) || results[0]["started"] != false {
		t.Errorf("the result says denied_by %s, started %v; want %v", got, results[0]["started"], want)
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// An allow is about whether the call runs, a widening about how.
func TestAnAllowDoesNotAnswerAWidening(t *testing.T) {
	r := newRoad(t, policy.Ask, &tools.Options{Approvals: always(policy.Rejected, nil)})
	r.Listen("allows", allowAll)
	ran := 0
	r.Add(change("change", func(*tools.Call) error { ran++; return nil }))
	if result := r.change(t, "change", wide+`}`); ran != 0 || result.Error == nil || result.Error.Code != tools.ApprovalRejected {
		t.Errorf("ran %d times, %v", ran, result.Error)
	}
}

func TestAGrantIsForOneCall(t *testing.T) {
	var asked []policy.Question
	r := newRoad(t, policy.Ask, &tools.Options{Approvals: keeps(&asked)})
	var ranIn []policy.Mode
	r.Add(change("change", func(call *tools.Call) error { ranIn = append(ranIn, call.Mode); return nil }))
	for _, args := range []string{wide + `}`, wide + `}`, `{}`} {
		if result := r.change(t, "change", args); result.Error != nil {
			t.Fatal(result.Error)
		}
	}
	want := []policy.Mode{policy.DangerFullAccess, policy.DangerFullAccess, policy.WorkspaceWrite}
	if len(asked) != 2 || !slices.Equal(ranIn, want) {
		t.Errorf("asked %d times, ran in %v; want two questions and %v", len(asked), ranIn, want)
	}
}

func TestARetryIsTheSameCall(t *testing.T) {
	var asked []policy.Question
	r := newRoad(t, policy.Ask, &tools.Options{Approvals: keeps(&asked)})
	var ranIn []policy.Mode
	flaky := change("flaky", func(call *tools.Call) error {
		if ranIn = append(ranIn, call.Mode); len(ranIn) < 3 {
			return &tools.Error{Code: tools.ToolFailed, Message: "busy", Retryable: true}
		}
		return nil
	})
	flaky.Idempotent = true
	r.Add(flaky)
	if result := r.change(t, "flaky", wide+`}`); result.Error != nil || len(asked) != 1 || len(ranIn) != 3 || ranIn[2] != policy.DangerFullAccess {
		t.Errorf("asked %d times, ran in %v, %v", len(asked), ranIn, result.Error)
	}
}

func TestTheQuestionShowsTheCall(t *testing.T) {
	var asked []policy.Question
	r := newRoad(t, policy.Ask, &tools.Options{Approvals: keeps(&asked)})
	r.Listen("asks", func(context.Context, tools.Call, func() tools.Verdict) tools.Verdict {
		return tools.Verdict{Reason: "a rule wants to know"}
	})
	r.Add(change("change", func(*tools.Call) error { return nil }))
	by := policy.Caller{Kind: policy.Program, Line: 3, Column: 7, Program: "p.ts", Source: "await tools.change()"}
	req := tools.Request{Tool: "change", Args: json.RawMessage(wide + `,"what":"x"}`), Caller: by, Session: r.session}
	if result := r.Call(t.Context(), req); result.Error != nil {
		t.Fatal(result.Error)
	}
	if len(asked) != 1 {
		t.Fatalf("asked %d times", len(asked))
	}
	q := asked[0]
	if string(q.Args) != string(req.Args) || q.Caller != by || q.Tool != "change" || q.CallID != "c1" ||
		q.Session != r.session.Log().ID() || q.Reason != "a rule wants to know; the task needs it" ||
		q.Mode != policy.WorkspaceWrite || q.To != policy.DangerFullAccess || !q.Confined {
		t.Errorf("the question is %+v", q)
	}
}

// An earlier denial is one of the same access: what does not change the access
// does not matter.
func TestAnEarlierDenialOfTheSameAccess(t *testing.T) {
	for _, c := range []struct {
		name, tool, first, second string
		found                     bool
	}{
		{"the same arguments", "change", `{"what":"x"}`, wide + `,"what":"x"}`, true},
		{"in another order", "change", `{"what":"x","timeout_ms":5}`, wide + `,"timeout_ms":5,"what":"x"}`, true},
		{"with another description", "change", `{"what":"x","description":"a"}`, wide + `,"what":"x","description":"b"}`, true},
		{"with an optional argument as null", "change", `{"what":"x","timeout_ms":null}`, wide + `,"what":"x"}`, true},
		{"bash with another timeout", "bash", `{"what":"x","timeout_ms":5}`, wide + `,"what":"x","timeout_ms":9}`, true},
		{"another tool with another timeout is another access", "change", `{"what":"x","timeout_ms":5}`, wide + `,"what":"x","timeout_ms":9}`, false},
		{"other arguments are another access", "change", `{"what":"x"}`, wide + `,"what":"y"}`, false},
		{"numbers that differ only beyond 2^53", "change", `{"timeout_ms":9007199254740993}`, wide + `,"timeout_ms":9007199254740992}`, false},
		{"arguments that are too long for a line", "change", `{"what":"` + strings.Repeat("x", 100<<10) + `"}`, wide + `,"what":"` + strings.Repeat("x", 100<<10) + `"}`, true},
	} {
		for _, resumed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, resumed %v", c.name, resumed), func(t *testing.T) {
				var asked []policy.Question
				r := newRoad(t, policy.Ask, &tools.Options{Approvals: keeps(&asked)})
				r.Add(change(c.tool, refuses))
				if result := r.change(t, c.tool, c.first); result.Error == nil {
					t.Fatal("the first call was not denied")
				}
				if resumed {
					r.resume(t)
				}
				if result := r.change(t, c.tool, c.second); result.Error != nil {
					t.Fatal(result.Error)
				}
				want, logged := "", any(nil)
				if c.found {
					want, logged = "c1", "c1"
				}
				if e := r.events(t, session.ApprovalAsked); len(asked) != 1 || asked[0].Denied != want || e[0]["denied_call"] != logged {
					t.Errorf("asked %+v, logged %v; want the denial %q", asked, e, want)
				}
			})
		}
	}
}

// resume goes on with the road's session after its log was closed.
func (r *road) resume(t *testing.T) {
	t.Helper()
	r.session.Log().Close()
	log, err := session.Open(r.session.Log().Path(), policy.Accept)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	permissions, err := policy.Resume(log, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.session, err = tools.NewSession(permissions); err != nil {
		t.Fatal(err)
	}
}

func TestRequireDenial(t *testing.T) {
	var asked []policy.Question
	r := newRoad(t, policy.Ask, &tools.Options{Approvals: keeps(&asked), RequireDenial: true})
	r.Add(change("change", refuses))
	result := r.change(t, "change", wide+`}`)
	if result.Error == nil || result.Error.Code != tools.ApprovalRejected || !strings.Contains(result.Error.Message, "run it without sandbox_permissions and justification first") {
		t.Errorf("without a denial: %v", result.Error)
	}
	r.wasDecided(t, "")
	r.wasDeniedBy(t, "require_denial")
	r.change(t, "change", `{}`)
	if result := r.change(t, "change", wide+`}`); result.Error != nil || len(asked) != 1 || asked[0].Denied != "c2" {
		t.Errorf("after a denial: %v, asked %+v", result.Error, asked)
	}
}

func TestRequireDenialLeavesAListenersQuestionAlone(t *testing.T) {
	var asked []policy.Question
	r := newRoad(t, policy.Ask, &tools.Options{Approvals: keeps(&asked), RequireDenial: true})
	r.Listen("asks", func(context.Context, tools.Call, func() tools.Verdict) tools.Verdict { return tools.Verdict{} })
	if result := r.delete(t.Context()); result.Error != nil || len(asked) != 1 {
		t.Errorf("%v, asked %+v", result.Error, asked)
	}
}

func TestPreviewIsForAPersonWhoIsAsked(t *testing.T) {
	for _, c := range []struct {
		name     string
		approval policy.Approval
		args     string
		preview  func() (string, error)
		want     string // in the question
		calls    int
	}{
		{"its text is shown", policy.Ask, wide + `}`, func() (string, error) { return "- a\n+ b", nil }, "- a\n+ b", 1},
		{"an error is contained", policy.Ask, wide + `}`, func() (string, error) { return "half", errors.New("it is gone") }, "no preview: it is gone", 1},
		{"a panic is contained", policy.Ask, wide + `}`, func() (string, error) { panic("kaboom") }, "no preview: it panicked: kaboom", 1},
		{"under never it is not made", policy.Never, wide + `}`, func() (string, error) { return "- a\n+ b", nil }, "", 0},
		{"without a question it is not made", policy.Ask, `{}`, func() (string, error) { return "- a\n+ b", nil }, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var asked []policy.Question
			r := newRoad(t, c.approval, &tools.Options{Approvals: keeps(&asked)})
			calls := 0
			tool := change("change", func(*tools.Call) error { return nil })
			tool.Preview = func(_ context.Context, call *tools.Call) (string, error) {
				calls++
				call.Args, call.Mode = nil, policy.DangerFullAccess
				return c.preview()
			}
			r.Add(tool)
			r.change(t, "change", c.args)
			shown := ""
			if len(asked) > 0 {
				shown = asked[0].Preview
			}
			if shown != c.want || calls != c.calls {
				t.Errorf("shown %q after %d calls, want %q after %d", shown, calls, c.want, c.calls)
			}
		})
	}
}

func TestAnAnswerThatCannotBeLoggedRunsNothing(t *testing.T) {
	var r *road
	r = newRoad(t, policy.Ask, &tools.Options{Approvals: answers(func(policy.Question) (policy.Outcome, error) {
		return policy.AllowedOnce, r.session.Log().Close()
	})})
	ran := 0
	r.Add(change("change", func(*tools.Call) error { ran++; return nil }))
	if result := r.change(t, "change", wide+`}`); ran != 0 || result.Error == nil {
		t.Errorf("ran %d times, %v", ran, result.Error)
	}
}

func TestAGuardSeesTheModeThatIsAskedForBeforeAnyoneIs(t *testing.T) {
	var questions []policy.Question
	r := newRoad(t, policy.Ask, &tools.Options{Approvals: keeps(&questions)})
	var ran, seen []policy.Mode
	r.Add(change("change", func(call *tools.Call) error { ran = append(ran, call.Mode); return nil }))
	r.Guard("mode", func(_ context.Context, call tools.Call) error {
		seen = append(seen, call.Mode)
		return errors.New("not in that mode")
	})
	result := r.change(t, "change", wide+"}")
	if result.Error == nil || result.Error.Code != tools.DeniedByGuard || ran != nil {
		t.Errorf("error %v, ran in %v", result.Error, ran)
	}
	if !slices.Equal(seen, []policy.Mode{policy.DangerFullAccess}) || questions != nil {
		t.Errorf("the guard saw %v, and somebody was asked %v", seen, questions)
	}
}
