package runtimetest

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/dsh-run/dsh/runtime"
)

// host is the outside world of the suite's programs:
//
//	echo   the call's arguments
//	where  the call's line and column
//	fail   rejects with a ToolCallError
//	big    an integer that no number holds, and members with odd names
//	slow   "slow", after half a second
//	never  no answer until the run is stopped
type host struct {
	onNever func()

	mu      sync.Mutex
	started []string
	waiting int
}

func (h *host) host() runtime.Host {
	functions := []runtime.Function{{Path: []string{"github", "create_issue"}}}
	for _, name := range []string{"echo", "where", "fail", "big", "slow", "never", "then1", "constructor", "__proto__", "x-y"} {
		functions = append(functions, runtime.Function{Path: []string{name}})
	}
	return runtime.Host{Functions: functions, ErrorClasses: []string{"ToolCallError"}, Start: h.start}
}

func (h *host) names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.started)
}

// released reports whether no call is waiting any more.
func (h *host) released() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting == 0
}

func (h *host) start(ctx context.Context, call runtime.Call, reply func(runtime.Reply)) {
	h.mu.Lock()
	h.started = append(h.started, call.Name)
	h.waiting++
	h.mu.Unlock()
	if call.Name == "never" && h.onNever != nil {
		h.onNever()
	}
	go func() {
		r := answer(ctx, call)
		h.mu.Lock()
		h.waiting--
		h.mu.Unlock()
		reply(r)
	}()
}

func answer(ctx context.Context, call runtime.Call) runtime.Reply {
	switch call.Name {
	case "where":
		at, _ := json.Marshal([]int{call.Line, call.Column})
		return runtime.Reply{Value: at}
	case "fail":
		return runtime.Reply{Error: &runtime.CallError{Class: "ToolCallError", Message: "it failed", Fields: json.RawMessage(`{"toolName":"fail","code":"E7"}`)}}
	case "big":
		return runtime.Reply{Value: json.RawMessage(`{"id":9007199254740993,"n":1e21,"__proto__":{"a":1},"half":"\ud800","z":-0,"safe":9007199254740991}`)}
	case "slow":
		return waited(ctx, 500*time.Millisecond, runtime.Reply{Value: json.RawMessage(`"slow"`)})
	case "never":
		return waited(ctx, time.Hour, runtime.Reply{})
	case "echo", "github.create_issue", "then1", "constructor", "__proto__", "x-y":
		return runtime.Reply{Value: call.Args}
	}
	return runtime.Reply{Error: &runtime.CallError{Class: "ToolCallError", Message: "no function " + call.Name}}
}

func waited(ctx context.Context, d time.Duration, r runtime.Reply) runtime.Reply {
	select {
	case <-time.After(d):
		return r
	case <-ctx.Done():
		return runtime.Reply{Error: &runtime.CallError{Message: "cancelled"}}
	}
}
