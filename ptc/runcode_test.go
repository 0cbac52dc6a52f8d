package ptc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/ptc"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// bench is a session whose tools only write down what happens to them.
type bench struct {
	*tools.Registry
	session *tools.Session

	mu       sync.Mutex
	trace    []string // "+name n" when a body starts, "-name n" when it ends
	running  int
	most     int // bodies at one time
	together int // how many `look` calls wait for each other
	gate     chan struct{}
	hanging  chan struct{} // closed when the body of `hang` runs
}

// afterHang is the number with which `look` waits for `hang` to run.
const afterHang = 99

type numbered struct {
	N int `json:"n"`
}

func newBench(t *testing.T) *bench {
	t.Helper()
	log, err := session.Create(filepath.Join(t.TempDir(), "s.jsonl"), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	permissions, err := policy.Begin(log, policy.ReadOnly, policy.Never, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := tools.NewSession(permissions)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{Registry: tools.NewRegistry(&tools.Options{Presentation: tools.Both}), session: s, gate: make(chan struct{}), hanging: make(chan struct{})}
	b.add("look", tools.Tool{Effect: tools.NoEffect, Overlaps: func(json.RawMessage) bool { return true }})
	b.add("change", tools.Tool{Effect: tools.Local})
	tools.Add(b.Registry, tools.Tool{Name: "fail", Description: "fails", Effect: tools.NoEffect},
		func(context.Context, *tools.Call, numbered) (int, error) {
			return 0, &tools.Error{Code: "OUT_OF_LUCK", Message: "no luck", Retryable: true, Details: json.RawMessage(`{"why":[1]}`)}
		})
	tools.Add(b.Registry, tools.Tool{Name: "hang", Description: "waits for its end", Effect: tools.External, Overlaps: func(json.RawMessage) bool { return true }},
		func(ctx context.Context, _ *tools.Call, _ struct{}) (int, error) {
			close(b.hanging)
			<-ctx.Done()
			return 0, ctx.Err()
		})
	ptc.Register(b.Registry, ptc.Options{Engine: runtime.NewInProcess(), InFlight: 4})
	return b
}

func (b *bench) add(name string, t tools.Tool) {
	t.Name, t.Description = name, name+"s at a number"
	tools.Add(b.Registry, t, func(ctx context.Context, _ *tools.Call, in numbered) (int, error) {
		b.note("+", name, in.N, 1)
		defer b.note("-", name, in.N, -1)
		if in.N == afterHang {
			<-b.hanging
		}
		if name == "look" && b.gathering() {
			select {
			case <-b.gate:
			case <-ctx.Done():
			}
		}
		return in.N * 10, nil
	})
}

// gathering reports whether not as many bodies have met as should.
func (b *bench) gathering() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.together > 0
}

func (b *bench) note(mark, name string, n, by int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trace = append(b.trace, fmt.Sprintf("%s%s %d", mark, name, n))
	b.running += by
	b.most = max(b.most, b.running)
	if b.together > 0 && b.running == b.together {
		b.together = 0
		close(b.gate)
	}
}

// run runs a program and returns what is known of it, whichever way it ended.
func (b *bench) run(t *testing.T, ctx context.Context, code string) (ptc.Report, tools.Result) {
	t.Helper()
	args, _ := json.Marshal(map[string]string{"code": code})
	result := b.Call(ctx, tools.Request{Tool: tools.RunCode, Args: args, Session: b.session})
	raw := result.Value
	if result.Error != nil {
		raw = result.Error.Details
	}
	var report ptc.Report
	if err := json.Unmarshal(raw, &report); err != nil {
		t.Fatalf("no report: %v in %+v", err, result)
	}
	return report, result
}

func (b *bench) events(t *testing.T, want session.Type) (list []map[string]any) {
	t.Helper()
	err := session.Read(b.session.Log().Path(), func(e session.Event) bool {
		if e.Type == want {
			var data map[string]any
			if err := json.Unmarshal(e.Data, &data); err != nil {
				t.Fatal(err)
			}
			list = append(list, data)
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestSafeCallsOverlapUpToTheCap(t *testing.T) {
	b := newBench(t)
	b.together = 4
	report, _ := b.run(t, t.Context(), `return await Promise.all([1,2,3,4,5,6,7,8].map(n => tools.look({n})))`)
	if got := string(report.Value); got != "[10,20,30,40,50,60,70,80]" {
		t.Errorf("value is %s, failure %+v", got, report.Failure)
	}
	if b.most != 4 {
		t.Errorf("%d bodies ran at one time, want the cap of 4", b.most)
	}
}

func TestAChangeRunsAloneAndHoldsBackWhatFollows(t *testing.T) {
	b := newBench(t)
	b.run(t, t.Context(), `await Promise.all([tools.look({n:1}), tools.change({n:2}), tools.look({n:3}), tools.change({n:4})])`)
	want := []string{"+look 1", "-look 1", "+change 2", "-change 2", "+look 3", "-look 3", "+change 4", "-change 4"}
	if !slices.Equal(b.trace, want) {
		t.Errorf("bodies ran as %v, want %v", b.trace, want)
	}
}

func TestResultsAreCommittedInTheOrderOfTheCalls(t *testing.T) {
	b := newBench(t)
	b.run(t, t.Context(), `await Promise.all(Array.from({length: 60}, (_, i) => i % 7 == 3 ? tools.change({n: i}) : i % 11 == 5 ? tools.fail({n: i}).catch(() => 0) : tools.look({n: i})))`)
	var called, ended []string
	for _, e := range b.events(t, session.ToolCall)[1:] {
		called = append(called, e["call_id"].(string))
	}
	for _, e := range b.events(t, session.ToolResult) {
		ended = append(ended, e["call_id"].(string))
	}
	if len(called) != 60 || called[59] != "c1:60" {
		t.Fatalf("%d calls were logged, the last as %s", len(called), called[len(called)-1])
	}
	if want := append(slices.Clone(called), "c1"); !slices.Equal(ended, want) {
		t.Errorf("results were committed as %v\nwant %v", ended, want)
	}
}

func TestAFailedCallThrowsAnErrorThatSaysEverything(t *testing.T) {
	b := newBench(t)
	report, _ := b.run(t, t.Context(), `
try { await tools.fail({n: 1}) } catch (e) {
  return [e instanceof ToolCallError, e instanceof Error, e.name, e.toolName, e.code, e.message, e.callId, e.retryable, e.details]
}`)
	want := `[true,true,"ToolCallError","fail","OUT_OF_LUCK","no luck","c1:1",true,{"why":[1]}]`
	if string(report.Value) != want {
		t.Errorf("the program saw %s, want %s; failure %+v", report.Value, want, report.Failure)
	}
}

func TestEveryCallOfAProgramIsLoggedUnderItsParent(t *testing.T) {
	b := newBench(t)
	b.run(t, t.Context(), "const x = 1;\n  await tools.change({n: x});\nawait tools.nothing({}).catch(() => 0)")
	calls := b.events(t, session.ToolCall)
	if len(calls) != 3 {
		t.Fatalf("%d calls were logged, want 3", len(calls))
	}
	caller := calls[1]["caller"].(map[string]any)
	if calls[1]["parent_id"] != "c1" || calls[1]["root_id"] != "c1" || caller["kind"] != "program" || caller["line"] != 2.0 {
		t.Errorf("the sub-call was logged as %v", calls[1])
	}
	if calls[2]["tool"] != "nothing" {
		t.Errorf("the call of an unknown tool was logged as %v", calls[2])
	}
}

func TestEndsOfPrograms(t *testing.T) {
	for _, c := range []struct {
		name, code string
		kind       runtime.FailureKind
		message    string
		effects    string
		retry      bool
	}{
		{"a change that was made is not safe to repeat",
			`await tools.change({n: 1}); throw new Error("later")`, runtime.Exception, "later", "c1:1 change committed", false},
		{"a failed program that only looked is safe to repeat",
			`await tools.look({n: 1}); throw new Error("later")`, runtime.Exception, "later", "", true},
		{"a change that nobody awaited and that runs is a failure",
			`const p = tools.look({n: 99}); tools.hang({}); await p`, runtime.DetachedCalls, "c1:2 (hang)", "c1:2 hang unknown", false},
		{"the third identical denial ends the run",
			`for (;;) { try { await tools.run_code({}) } catch {}; try { await tools.change({n: 13}) } catch {} }`, runtime.Denied, "denied 3 times", "c1:2 change not_started c1:4 change not_started c1:6 change not_started", true},
		{"run_code cannot be called from a program",
			`await tools.run_code({code: "1"})`, runtime.Exception, "run_code cannot be called from inside a program", "", true},
		{"an unknown tool is named with its neighbour",
			`await tools.chnge({n: 1})`, runtime.Exception, `did you mean "change"`, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.Guard("thirteen", func(_ context.Context, call tools.Call) error {
				if strings.Contains(string(call.Args), "13") && call.Tool == "change" {
					return errors.New("not thirteen")
				}
				return nil
			})
			report, result := b.run(t, t.Context(), c.code)
			if report.Failure == nil {
				t.Fatalf("the program ended well: %s", report.Value)
			}
			if report.Failure.Kind != c.kind || !strings.Contains(report.Failure.Message, c.message) {
				t.Errorf("failure is %+v, want %s with %q", report.Failure, c.kind, c.message)
			}
			var effects []string
			for _, e := range report.Effects {
				effects = append(effects, fmt.Sprintf("%s %s %s", e.ID, e.Tool, e.State))
			}
			if got := strings.Join(effects, " "); got != c.effects {
				t.Errorf("effects are %q, want %q", got, c.effects)
			}
			if report.SafeToRetry != c.retry {
				t.Errorf("safe_to_retry is %v", report.SafeToRetry)
			}
			if result.Error == nil || result.Error.Code != ptc.ProgramFailed {
				t.Errorf("the call ended with %+v", result.Error)
			}
		})
	}
}

func TestCancellingEndsProgramAndCalls(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	ctx = ptc.WithRun(ctx, ptc.Run{OnCall: func(string, string, *ptc.SubCall) { cancel() }})
	report, result := b.run(t, ctx, `await tools.hang({})`)
	if result.Error == nil || result.Error.Code != tools.Aborted || report.Failure.Kind != runtime.Abort {
		t.Errorf("the call ended with %+v", result.Error)
	}
	if n := len(b.events(t, session.ToolResult)); n != 2 {
		t.Errorf("%d results were logged, want that of the program and that of its call", n)
	}
}

func TestWhatAnEmbedderChoosesReachesTheRun(t *testing.T) {
	b := newBench(t)
	var lines []string
	ctx := ptc.WithRun(t.Context(), ptc.Run{
		Args: json.RawMessage(`["a"]`), Limits: runtime.Limits{Calls: 1},
		OnLine: func(l runtime.Line) { lines = append(lines, l.Text) },
	})
	report, _ := b.run(t, ctx, `console.log("got", args[0]); await tools.look({n: 1}); await tools.look({n: 2})`)
	if !slices.Equal(lines, []string{"got a"}) {
		t.Errorf("printed lines were %q", lines)
	}
	if report.Failure == nil || report.Failure.Kind != runtime.CallLimit {
		t.Errorf("failure is %+v, want the call limit of 1", report.Failure)
	}
	if logged := b.events(t, session.ProgramLog); len(logged) != 1 || logged[0]["text"] != "got a" {
		t.Errorf("logged lines are %v", logged)
	}
}

// A tool that changes nothing when it fails has changed something when only
// what came after its body failed.
func TestAnAtomicEffectIsCommittedWhateverBecomesOfItsValue(t *testing.T) {
	for _, c := range []struct {
		name string
		body error
		want ptc.EffectState
	}{
		{"the body ended well and its result was blocked", nil, ptc.Committed},
		{"the body failed", errors.New("no room"), ptc.EffectNotStarted},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			tools.Add(b.Registry, tools.Tool{Name: "publish", Description: "publishes", Effect: tools.Local, Atomic: true},
				func(context.Context, *tools.Call, struct{}) (int, error) { return 1, c.body })
			b.After("blocks", func(_ context.Context, call tools.Call, _ tools.Result) (tools.Amendment, error) {
				if call.Tool == "publish" {
					return tools.Amendment{Block: "not that one"}, nil
				}
				return tools.Amendment{}, nil
			})
			report, _ := b.run(t, t.Context(), `await tools.publish({}).catch(() => 0)`)
			if len(report.Effects) != 1 || report.Effects[0].State != c.want || report.SafeToRetry != (c.want == ptc.EffectNotStarted) {
				t.Errorf("effects %+v, safe to retry %v; want %s", report.Effects, report.SafeToRetry, c.want)
			}
		})
	}
}
