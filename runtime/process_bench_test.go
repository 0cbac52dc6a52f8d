package runtime_test

import (
	"context"
	"testing"

	"github.com/dsh-run/dsh/runtime"
)

func BenchmarkProcess(b *testing.B) {
	trivial := "return 1"
	sequential := "for (let i = 0; i < 1000; i++) await tools.read({path: 'a'})"
	parallel := "await Promise.all(Array.from({length: 1000}, () => tools.read({path: 'a'})))"
	b.Run("warm", func(b *testing.B) { benchProcess(b, trivial, 1) })
	b.Run("cold", func(b *testing.B) { benchProcess(b, trivial, -1) })
	b.Run("1000 sequential", func(b *testing.B) { benchProcess(b, sequential, 1) })
	b.Run("1000 parallel", func(b *testing.B) { benchProcess(b, parallel, 1) })
}

// benchProcess measures runs whose worker is idle already, or that start it
// when spares is negative.
func benchProcess(b *testing.B, source string, spares int) {
	engine := newProcess(b, runtime.ProcessOptions{Spares: spares})
	host := runtime.Host{
		Functions: []runtime.Function{{Path: []string{"read"}}},
		Start: func(_ context.Context, _ runtime.Call, reply func(runtime.Reply)) {
			reply(runtime.Reply{Value: []byte(`{"ok":true}`)})
		},
	}
	for b.Loop() {
		b.StopTimer()
		engine.AwaitSpares()
		b.StartTimer()
		o, err := engine.Run(context.Background(), runtime.Program{Source: source}, host)
		if err != nil || o.Failure != nil {
			b.Fatal(err, o.Failure)
		}
	}
}
