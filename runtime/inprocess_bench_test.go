package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dop251/goja"
)

func benchRun(b *testing.B, source string, asynchronous bool) {
	engine := newInProcess(hooks{})
	engine.warm()
	value := json.RawMessage(`{"ok":true}`)
	host := Host{
		Functions:    []Function{{Path: []string{"read"}}, {Path: []string{"write"}}, {Path: []string{"bash"}}},
		ErrorClasses: []string{"ToolCallError"},
		Start: func(_ context.Context, _ Call, reply func(Reply)) {
			if asynchronous {
				go reply(Reply{Value: value})
				return
			}
			reply(Reply{Value: value})
		},
	}
	b.ReportAllocs()
	for b.Loop() {
		o, err := engine.Run(context.Background(), Program{Source: source}, host)
		if err != nil || o.Failure != nil {
			b.Fatal(err, o.Failure)
		}
	}
}

func BenchmarkInProcess(b *testing.B) {
	b.Run("trivial", func(b *testing.B) { benchRun(b, "return 1", false) })
	b.Run("typescript", func(b *testing.B) { benchRun(b, "const x: number = 1; return x", false) })
	b.Run("console", func(b *testing.B) { benchRun(b, "console.log('a', {b: 1})", false) })
	b.Run("one call", func(b *testing.B) { benchRun(b, "return await tools.read({path: 'a'})", false) })
	b.Run("1000 sequential", func(b *testing.B) {
		benchRun(b, "for (let i = 0; i < 1000; i++) await tools.read({path: 'a'})", false)
	})
	b.Run("1000 sequential, other goroutine", func(b *testing.B) {
		benchRun(b, "for (let i = 0; i < 1000; i++) await tools.read({path: 'a'})", true)
	})
	b.Run("1000 parallel", func(b *testing.B) {
		benchRun(b, "await Promise.all(Array.from({length: 1000}, () => tools.read({path: 'a'})))", false)
	})
}

// benchDocument is about 1 MB of the JSON that tools return.
var benchDocument = []byte("[" + strings.Repeat(`{"id":12345,"name":"a file name.txt","path":"/home/user/project/src/file.ts","size":4711.5,"tags":["a","b","c"],"ok":true,"none":null},`, 7500) + "0]")

func BenchmarkValues(b *testing.B) {
	vm := goja.New()
	p := newPristine(vm)
	numbers := []byte("[" + strings.Repeat("1234567,", 130_000) + "0]")
	text := []byte(fmt.Sprintf("%q", strings.Repeat("some text of a file\n", 50_000)))
	for name, document := range map[string][]byte{"objects": benchDocument, "numbers": numbers, "text": text} {
		d := decoder{vm: vm, pristine: &p, check: func() {}}
		v, err := d.decode(document)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("decode "+name, func(b *testing.B) {
			b.SetBytes(int64(len(document)))
			for b.Loop() {
				d := decoder{vm: vm, pristine: &p, check: func() {}}
				if _, err := d.decode(document); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("encode "+name, func(b *testing.B) {
			b.SetBytes(int64(len(document)))
			for b.Loop() {
				e := encoder{vm: vm, pristine: &p, check: func() {}, limit: 1 << 30}
				if out, err := e.encode("v", v); err != nil || len(out) != len(document) {
					b.Fatal(err, len(out), len(document))
				}
			}
		})
	}
}
