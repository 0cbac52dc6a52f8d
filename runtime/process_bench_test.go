package runtime_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/dsh-run/dsh/runtime"
	_ "github.com/dsh-run/dsh/runtime/worker"
	"github.com/dsh-run/dsh/sandbox"
)

func startSealed(cmd *exec.Cmd, exe string) (runtime.Confinement, error) {
	seal, err := sandbox.StartSealed(cmd, exe)
	return runtime.Confinement{Backend: seal.Backend, Enforcement: runtime.Enforcement(seal.Enforcement), Reasons: seal.Reasons}, err
}

func newProcess(t testing.TB, o runtime.ProcessOptions) *runtime.ProcessEngine {
	t.Helper()
	if o.Start == nil {
		o.Start = startSealed
	}
	e, err := runtime.NewProcess(&o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func TestTmp(t *testing.T) {
	e := newProcess(t, runtime.ProcessOptions{})
	host := runtime.Host{Start: func(ctx context.Context, c runtime.Call, reply func(runtime.Reply)) {
		reply(runtime.Reply{Value: []byte("1")})
	}}
	for _, src := range []string{"one", "seq 10", "par 1000", "loop", "mem"} {
		begin := time.Now()
		out, err := e.Run(context.Background(), runtime.Program{Source: src}, host)
		t.Logf("%s: %v %+v %+v %v %v", src, time.Since(begin), out, out.Failure, string(out.Value), err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	out, err := e.Run(ctx, runtime.Program{Source: "wait"}, host)
	t.Logf("%+v %v %v", out, out.Failure, err)
}

func benchRun(b *testing.B, src string, spares int) {
	e := newProcess(b, runtime.ProcessOptions{Spares: spares})
	host := runtime.Host{Start: func(ctx context.Context, c runtime.Call, reply func(runtime.Reply)) {
		reply(runtime.Reply{Value: []byte("1")})
	}}
	for b.Loop() {
		b.StopTimer()
		if spares > 0 {
			e.AwaitSpares()
		}
		b.StartTimer()
		out, err := e.Run(context.Background(), runtime.Program{Source: src}, host)
		if err != nil || out.Failure != nil {
			b.Fatal(err, out.Failure)
		}
	}
}

func BenchmarkWarm(b *testing.B)    { benchRun(b, "one", 1) }
func BenchmarkCold(b *testing.B)    { benchRun(b, "one", -1) }
func BenchmarkSeq1000(b *testing.B) { benchRun(b, "seq 1000", 1) }
func BenchmarkPar1000(b *testing.B) { benchRun(b, "par 1000", 1) }
