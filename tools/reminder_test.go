package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
)

// flaky is a road with a tool that fails unless its path is "good" or failing
// is off, and with the reminder.
func flaky(t *testing.T, failing *bool) *road {
	r := newRoad(t, policy.Ask, nil)
	addFlaky(r, failing)
	return r
}

func addFlaky(r *road, failing *bool) {
	r.After("reminder", tools.Reminder())
	tool := raw(tools.Tool{Name: "flaky"}, func(ctx context.Context, _ *tools.Call) (json.RawMessage, error) {
		if ctx.Err() != nil || *failing {
			return nil, fmt.Errorf("it failed")
		}
		return json.RawMessage("1"), nil
	})
	r.Add(tool)
}

func (r *road) try(t *testing.T, args string) (reminder string) {
	t.Helper()
	result := r.Call(t.Context(), tools.Request{Tool: "flaky", Args: json.RawMessage(args), Session: r.session})
	for _, block := range result.Meta.Context {
		reminder += block.Text
	}
	return reminder
}

func TestReminder(t *testing.T) {
	const same = `{"path":"a","n":9007199254740993}`
	for _, c := range []struct {
		name  string
		steps []string // arguments; "fix" and "break" switch the failing, "reopen" opens the log again
		want  string   // for each call: the number it is reminded of, or -
	}{
		{"the third failure and each further one", []string{same, same, same, same}, "- - 3 4"},
		{"the order of members, a description and a null do not matter", []string{same, `{"n":9007199254740993,"path":"a","description":"try"}`, `{"path":"a","n":9007199254740993,"x":null}`}, "- - 3"},
		{"other arguments are another call", []string{same, same, `{"path":"b"}`, `{"path":"a","n":9007199254740992}`}, "- - - -"},
		{"other calls may lie between", []string{same, `{}`, same, `{}`, same}, "- - - - 3"},
		{"a success starts anew", []string{same, same, "fix", same, "break", same, same, same}, "- - - - - 3"},
		{"the count outlives the process", []string{same, same, "reopen", same, "reopen", same}, "- - 3 4"},
		{"a success in the log starts anew", []string{same, same, "fix", same, "break", "reopen", same, same, same}, "- - - - - 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			failing := true
			r := flaky(t, &failing)
			var got []string
			for _, step := range c.steps {
				switch step {
				case "fix", "break":
					failing = step == "break"
				case "reopen":
					r.reopen(t)
				default:
					got = append(got, number(r.try(t, step)))
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Fatalf("reminded of %s, want %s", strings.Join(got, " "), c.want)
			}
		})
	}
}

// number is the count in a reminder.
func number(reminder string) string {
	if reminder == "" {
		return "-"
	}
	var n string
	fmt.Sscanf(reminder, "[reminder: this exact call has now failed %s times", &n)
	return n
}

func TestLongArgumentsAreRememberedAcrossAResume(t *testing.T) {
	failing := true
	r := flaky(t, &failing)
	long := `{"text":"` + strings.Repeat("x", 100<<10) + `"}`
	r.try(t, long)
	r.try(t, long)
	r.reopen(t)
	if got := number(r.try(t, long)); got != "3" {
		t.Fatalf("reminded of %s, want 3", got)
	}
}

func TestACancellationIsNoFailureToBeRemindedOf(t *testing.T) {
	failing := true
	r := flaky(t, &failing)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 4 {
		r.Call(ctx, tools.Request{Tool: "flaky", Session: r.session})
	}
	if got := number(r.try(t, `{}`)); got != "-" {
		t.Fatalf("reminded of %s after cancelled calls", got)
	}
}

func TestRefusedCallsAreRemindedOfToo(t *testing.T) {
	r := newRoad(t, policy.Ask, nil)
	r.After("reminder", tools.Reminder())
	r.Listen("no", denyAll)
	var last tools.Result
	for range 3 {
		last = r.delete(t.Context())
	}
	if len(last.Meta.Context) != 1 || codeOf(last) != tools.DeniedByListener {
		t.Fatalf("error %v, context %v", last.Error, last.Meta.Context)
	}
}

func TestOnlyTheLastFailuresAreRemembered(t *testing.T) {
	failing := true
	r := flaky(t, &failing)
	r.try(t, `{"n":0}`)
	r.try(t, `{"n":0}`)
	for n := range 256 {
		r.try(t, fmt.Sprintf(`{"n":%d}`, n+1))
	}
	if got := number(r.try(t, `{"n":0}`)); got != "-" {
		t.Fatalf("reminded of %s, want the count to be forgotten", got)
	}
	if first, second := number(r.try(t, `{"n":256}`)), number(r.try(t, `{"n":256}`)); first != "-" || second != "3" {
		t.Fatalf("reminded of %s and %s, want the newest call to be remembered", first, second)
	}
}
