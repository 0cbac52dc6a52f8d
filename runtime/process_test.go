package runtime_test

import (
	"context"
	"fmt"
	"os/exec"
	"testing"

	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/runtime/runtimetest"
	_ "github.com/dsh-run/dsh/runtime/worker"
	"github.com/dsh-run/dsh/sandbox"
	"github.com/dsh-run/dsh/session/sessiontest"
)

func startSealed(cmd *exec.Cmd, exe string) (runtime.Confinement, error) {
	seal, err := sandbox.StartSealed(cmd, exe)
	return runtime.Confinement{Backend: seal.Backend, Enforcement: runtime.Enforcement(seal.Enforcement), Reasons: seal.Reasons}, err
}

// newProcess makes an engine whose workers are sealed, where the kernel can.
func newProcess(t testing.TB, o runtime.ProcessOptions) *runtime.ProcessEngine {
	t.Helper()
	if o.Start == nil {
		o.Start = startSealed
	}
	e, err := runtime.NewProcess(&o)
	if err != nil {
		sessiontest.Need(t, "kernel", false, err.Error())
	}
	t.Cleanup(func() { e.Close() })
	out, err := e.Run(context.Background(), runtime.Program{Source: "return 1"}, quietHost)
	if err != nil {
		t.Fatal(err)
	}
	unsealed := out.Failure != nil && out.Failure.Kind == runtime.SandboxUnavailable
	sessiontest.Need(t, "kernel", !unsealed, fmt.Sprint(out.Failure))
	if string(out.Value) != "1" {
		t.Fatalf("a trivial program fails: %v", out.Failure)
	}
	return e
}

// quietHost has no functions.
var quietHost = runtime.Host{Start: func(_ context.Context, _ runtime.Call, reply func(runtime.Reply)) {
	reply(runtime.Reply{Error: &runtime.CallError{Message: "no host functions"}})
}}

func TestProcessConforms(t *testing.T) {
	engine := newProcess(t, runtime.ProcessOptions{})
	runtimetest.Run(t, func(*testing.T) runtime.Engine { return engine }, &runtimetest.Options{Contained: true})
}
