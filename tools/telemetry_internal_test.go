package tools

import (
	"context"
	"encoding/json"
	"testing"
)

// BenchmarkTelemetryWithoutProvider is the cost of telemetry for an embedder who
// installs none.
func BenchmarkTelemetryWithoutProvider(b *testing.B) {
	r := NewRegistry(nil)
	r.Add(Tool{Name: "a", Description: "a", Input: json.RawMessage(`{}`),
		Handle: func(context.Context, *Call) (json.RawMessage, error) { return nil, nil }})
	e := r.newExecution(Request{ID: "c1", Tool: "a"})
	b.ReportAllocs()
	for b.Loop() {
		ctx, span := e.beginSpan(b.Context())
		e.report(ctx, span, Result{})
	}
}
