package ptc_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/ptc"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/tools"
)

func TestACallSaysWhichLineOfWhichProgramMadeIt(t *testing.T) {
	long := "return await tools.look({n: 1}) // " + strings.Repeat("é", 300)
	for _, c := range []struct {
		name, code, source string
		line               int
	}{
		{"the line, trimmed", "const a = 1\n\t  return await tools.look({n: a})  \n// end", "return await tools.look({n: a})", 2},
		{"a line of TypeScript", "interface A { n: number }\nconst a: A = {n: 1}\nreturn await tools.look(a)", "return await tools.look(a)", 3},
		{"other ends of lines", "// 1\r// 2\r\n// 3\u2028// 4\u2029return await tools.look({n: 1})", "return await tools.look({n: 1})", 5},
		{"a fence counts as a line", "```ts\nreturn await tools.look({n: 1})\n```", "return await tools.look({n: 1})", 2},
		{"a long line is cut and marked", long, string([]rune(long)[:199]) + "…", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			var got policy.Caller
			b.Guard("sees", func(_ context.Context, call tools.Call) error {
				if call.Tool == "look" {
					got = call.Caller
				}
				return nil
			})
			if report, _ := b.run(t, ptc.WithRun(t.Context(), ptc.Run{Name: "report.ts"}), c.code); report.Failure != nil {
				t.Fatal(report.Failure)
			}
			if got.Kind != policy.Program || got.Program != "report.ts" || got.Line != c.line || got.Source != c.source {
				t.Errorf("the caller is %+v, want line %d of report.ts: %q", got, c.line, c.source)
			}
		})
	}
}

func TestSpansOfAProgramsCallsAreInsideOfItsOwn(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	r := tools.NewRegistry(&tools.Options{TracerProvider: trace.NewTracerProvider(trace.WithSpanProcessor(spans))})
	tools.Add(r, tools.Tool{Name: "look", Description: "looks"},
		func(context.Context, *tools.Call, struct{}) (int, error) { return 1, nil })
	ptc.Register(r, ptc.Options{Engine: runtime.NewInProcess()})
	result := r.Call(t.Context(), tools.Request{ID: "c1", Tool: tools.RunCode,
		Args: json.RawMessage(`{"code":"await tools.look(); await tools.look()"}`)})
	ended := spans.Ended()
	if result.Error != nil || len(ended) != 3 {
		t.Fatalf("%d spans, error %v; want one for run_code and one for each call", len(ended), result.Error)
	}
	program := ended[2]
	for _, span := range ended[:2] {
		if span.Name() != "execute_tool look" || span.Parent().SpanID() != program.SpanContext().SpanID() {
			t.Errorf("the span %q is not inside of %q", span.Name(), program.Name())
		}
	}
}
