package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// reopen opens the road's log again, as after a crash.
func (r *road) reopen(t *testing.T) tools.Repaired {
	t.Helper()
	path := r.session.Log().Path()
	r.session.Log().Close()
	log, err := session.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	permissions, err := policy.Resume(log, nil)
	if err != nil {
		t.Fatal(err)
	}
	var repaired tools.Repaired
	if r.session, repaired, err = tools.ResumeSession(permissions); err != nil {
		t.Fatal(err)
	}
	return repaired
}

// dying are tools for a process that dies in the middle: from crash on, nothing
// gets into the log.
func dying(r *road) {
	crash := func() { r.session.Log().Close() }
	body := func(dies bool, sub string) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
			if sub != "" {
				r.Call(ctx, tools.Request{ID: call.ID + ":1", Tool: sub, Parent: call})
			}
			if dies {
				crash()
			}
			return json.RawMessage("1"), nil
		}
	}
	r.Guard("dies", func(_ context.Context, call tools.Call) error {
		if call.Tool == "dies_before" {
			crash()
		}
		return nil
	})
	r.Add(raw(tools.Tool{Name: "dies_before"}, body(false, "")))
	for _, e := range []tools.Effect{tools.External, tools.Local, tools.NoEffect} {
		r.Add(raw(tools.Tool{Name: "dies_" + e.String(), Effect: e}, body(true, "")))
		r.Add(raw(tools.Tool{Name: "ends_" + e.String(), Effect: e}, body(false, "")))
	}
	for _, sub := range []string{"dies_external", "dies_none", "ends_external", "ends_none"} {
		r.Add(raw(tools.Tool{Name: "calls_" + sub, Effect: tools.NoEffect}, body(true, sub)))
	}
	r.AddProgram(raw(tools.Tool{Name: tools.RunCode, Effect: tools.NoEffect}, func(_ context.Context, call *tools.Call) (json.RawMessage, error) {
		_, err := call.Session.Log().Append(session.ProgramStart, map[string]string{"call_id": call.ID})
		crash()
		return json.RawMessage("1"), err
	}))
}

func TestCallsThatADeadProcessLeftOpenAreClosed(t *testing.T) {
	for _, c := range []struct {
		name, tool string
		want       string // the calls in the order of their closing, with their codes
		text       string // of the last one
	}{
		{"all calls ended: nothing to close", "ends_external", "", ""},
		{"a body that had not begun", "dies_before", "c1 TOOL_NOT_STARTED", "safe to repeat"},
		{"an external body that had begun", "dies_external", "c1 TOOL_OUTCOME_UNKNOWN", "check what it changed before repeating"},
		{"a local body that had begun", "dies_local", "c1 TOOL_OUTCOME_UNKNOWN", "check what it changed before repeating"},
		{"a body without effect", "dies_none", "c1 TOOL_NOT_STARTED", "changes nothing"},
		{"a program, whatever it called", tools.RunCode, "c1 TOOL_OUTCOME_UNKNOWN", "none of its calls"},
		{"a call whose sub-call had begun: the sub-call first", "calls_dies_external", "c1:1 TOOL_OUTCOME_UNKNOWN, c1 TOOL_OUTCOME_UNKNOWN", "c1:1 dies_external"},
		{"a call whose sub-call had begun and ended", "calls_ends_external", "c1 TOOL_OUTCOME_UNKNOWN", "c1:1 ends_external"},
		{"a call whose open sub-call changes nothing", "calls_dies_none", "c1:1 TOOL_NOT_STARTED, c1 TOOL_NOT_STARTED", "safe to repeat"},
		{"a call whose ended sub-call changed nothing", "calls_ends_none", "c1 TOOL_NOT_STARTED", "safe to repeat"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoad(t, policy.Ask, nil)
			dying(r)
			r.call(t.Context(), c.tool)
			before := len(r.events(t, session.ToolResult))
			repaired := r.reopen(t)
			var got []string
			for _, call := range repaired {
				got = append(got, fmt.Sprintf("%s %s", call.CallID, call.Error.Code))
			}
			if strings.Join(got, ", ") != c.want {
				t.Fatalf("closed %s, want %s", strings.Join(got, ", "), c.want)
			}
			results := r.events(t, session.ToolResult)[before:]
			if len(results) != len(repaired) {
				t.Fatalf("%d results were logged for %d calls", len(results), len(repaired))
			}
			for i, result := range results {
				checkRepair(t, result, repaired[i])
			}
			if n := len(repaired); n > 0 && !strings.Contains(repaired[n-1].Error.Message, c.text) {
				t.Fatalf("message %q, want %q in it", repaired[n-1].Error.Message, c.text)
			}
			if again := r.reopen(t); again != nil {
				t.Fatalf("opening once more closed %v", again)
			}
			if id := r.call(t.Context(), "ends_none").Meta.CallID; id != "c2" {
				t.Fatalf("the next call is %s, want c2", id)
			}
		})
	}
}

func checkRepair(t *testing.T, result map[string]any, want tools.Repair) {
	t.Helper()
	failure, _ := result["error"].(map[string]any)
	if result["call_id"] != want.CallID || failure["code"] != string(want.Error.Code) || failure["message"] != want.Error.Message {
		t.Errorf("logged %v for %+v", result, want)
	}
	if result["started"] != (want.Error.Code == tools.ToolOutcomeUnknown) || result["duration_ms"] != float64(0) || result["value"] != nil {
		t.Errorf("logged %v, want started to follow from the code, no duration and no value", result)
	}
}

func TestARepairThatCannotBeLoggedIsAnError(t *testing.T) {
	r := newRoad(t, policy.Ask, nil)
	dying(r)
	r.call(t.Context(), "dies_external")
	log, err := session.Open(r.session.Log().Path(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	permissions, err := policy.Resume(log, nil)
	if err != nil {
		t.Fatal(err)
	}
	log.Close()
	if s, repaired, err := tools.ResumeSession(permissions); !errors.Is(err, session.ErrClosed) || s != nil || repaired != nil {
		t.Fatalf("got %v, %v, %v", s, repaired, err)
	}
}

// Redaction can take ids away or make several calls one, and a log can have
// been edited. Then less is known about its calls, and it is resumed.
func TestALogWithoutUsableIDsIsResumed(t *testing.T) {
	type events [][2]string
	for _, c := range []struct {
		name   string
		log    events
		closed string
	}{
		{"calls without ids", events{
			{"tool/call", `{"[redacted:R]":"c1","tool":"a"}`}, {"tool/started", `{"[redacted:R]":"c1"}`}, {"tool/result", `{"[redacted:R]":"c1"}`},
		}, ""},
		{"a call that is its own parent", events{
			{"tool/call", `{"call_id":"x","parent_id":"x","tool":"a"}`}, {"tool/started", `{"call_id":"x"}`},
		}, "x"},
		{"calls that are each other's parents", events{
			{"tool/call", `{"call_id":"x","parent_id":"y","tool":"a"}`}, {"tool/call", `{"call_id":"y","parent_id":"x","tool":"a"}`},
			{"tool/started", `{"call_id":"x"}`}, {"tool/started", `{"call_id":"y"}`},
		}, "y x"},
		{"calls with one id", events{
			{"tool/call", `{"call_id":"x","tool":"a"}`}, {"tool/call", `{"call_id":"x","parent_id":"x","tool":"a"}`},
			{"tool/started", `{"call_id":"x"}`}, {"tool/started", `{"call_id":"x"}`},
		}, "x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRoad(t, policy.Ask, nil)
			for _, e := range c.log {
				if _, err := r.session.Log().Append(session.Type(e[0]), json.RawMessage(e[1])); err != nil {
					t.Fatal(err)
				}
			}
			var closed []string
			for _, call := range r.reopen(t) {
				closed = append(closed, call.CallID)
			}
			if got := strings.Join(closed, " "); got != c.closed {
				t.Errorf("closed the calls %q, want %q", got, c.closed)
			}
			if again := r.reopen(t); again != nil {
				t.Errorf("resuming once more repairs %v", again)
			}
		})
	}
}
