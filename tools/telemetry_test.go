package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	api "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
)

// telescope collects what a road reports.
type telescope struct {
	*road
	spans   *tracetest.SpanRecorder
	metrics *metric.ManualReader
}

func newTelescope(t *testing.T, o tools.Options) *telescope {
	s := &telescope{spans: tracetest.NewSpanRecorder(), metrics: metric.NewManualReader()}
	o.TracerProvider = trace.NewTracerProvider(trace.WithSpanProcessor(s.spans))
	o.MeterProvider = metric.NewMeterProvider(metric.WithReader(s.metrics))
	s.road = newRoad(t, policy.Ask, &o)
	return s
}

// last is the span that ended last.
func (s *telescope) last(t *testing.T) trace.ReadOnlySpan {
	t.Helper()
	ended := s.spans.Ended()
	if len(ended) == 0 {
		t.Fatal("no span ended")
	}
	return ended[len(ended)-1]
}

func attributesOf(list []attribute.KeyValue) map[string]string {
	m := map[string]string{}
	for _, kv := range list {
		m[string(kv.Key)] = kv.Value.String()
	}
	return m
}

func TestOneSpanPerCallSaysHowItEnded(t *testing.T) {
	const secret = "hunter2"
	s := newTelescope(t, tools.Options{})
	tools.Add(s.Registry, tools.Tool{Name: "fails", Description: "fails"},
		func(context.Context, *tools.Call, struct{}) (string, error) {
			return "", &tools.Error{Code: "OUT_OF_LUCK", Message: secret}
		})
	tools.Add(s.Registry, tools.Tool{Name: "odd", Description: "fails with an odd code"},
		func(context.Context, *tools.Call, struct{}) (string, error) {
			return "", &tools.Error{Code: "not found: " + secret}
		})
	tools.Add(s.Registry, tools.Tool{Name: "confined", Description: "is confined", Confined: true},
		func(_ context.Context, call *tools.Call, _ struct{}) (string, error) {
			call.Confine(policy.Confinement{Mode: call.Mode, Backend: "landlock"})
			return secret, nil
		})
	s.Guard("veto", func(_ context.Context, call tools.Call) error {
		if strings.Contains(string(call.Args), "veto") {
			return errors.New(secret)
		}
		return nil
	})
	for _, c := range []struct {
		name, tool, args, span string
		want                   map[string]string
	}{
		{"a success", "delete_path", `{"path":"hunter2"}`, "execute_tool delete_path", map[string]string{
			"gen_ai.tool.name": "delete_path", "dsh.code": "OK", "dsh.started": "true"}},
		{"what confined it", "confined", `{}`, "execute_tool confined", map[string]string{
			"gen_ai.tool.name": "confined", "dsh.code": "OK", "dsh.started": "true", "dsh.sandbox.backend": "landlock"}},
		{"a failure of the tool", "fails", `{}`, "execute_tool fails", map[string]string{
			"gen_ai.tool.name": "fails", "dsh.code": "OUT_OF_LUCK", "error.type": "OUT_OF_LUCK", "dsh.started": "true"}},
		{"a code that is none", "odd", `{}`, "execute_tool odd", map[string]string{
			"gen_ai.tool.name": "odd", "dsh.code": "OTHER", "error.type": "OTHER", "dsh.started": "true"}},
		{"a denial", "delete_path", `{"path":"veto hunter2"}`, "execute_tool delete_path", map[string]string{
			"gen_ai.tool.name": "delete_path", "dsh.code": "DENIED_BY_GUARD", "error.type": "DENIED_BY_GUARD",
			"dsh.denied.stage": "guard", "dsh.started": "false"}},
		{"a tool that a model made up", "hunter2", `{}`, "execute_tool unknown", map[string]string{
			"gen_ai.tool.name": "unknown", "dsh.code": "UNKNOWN_TOOL", "error.type": "UNKNOWN_TOOL",
			"dsh.denied.stage": "materialise", "dsh.started": "false"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(s.spans.Ended())
			result := s.Call(t.Context(), tools.Request{Tool: c.tool, Args: json.RawMessage(c.args), Session: s.session})
			if n := len(s.spans.Ended()) - before; n != 1 || len(s.spans.Started()) != len(s.spans.Ended()) {
				t.Fatalf("%d spans ended of one call", n)
			}
			span := s.last(t)
			c.want["gen_ai.operation.name"], c.want["gen_ai.tool.call.id"] = "execute_tool", result.Meta.CallID
			c.want["dsh.caller"], c.want["dsh.sandbox.mode"] = "direct", "workspace-write"
			if diff := cmp.Diff(c.want, attributesOf(span.Attributes())); diff != "" || span.Name() != c.span {
				t.Errorf("span %q has other attributes:\n%s", span.Name(), diff)
			}
			if failed := span.Status().Code == codes.Error; failed != (result.Error != nil) {
				t.Errorf("status is %v, the result's error %v", span.Status(), result.Error)
			}
			if shown := fmt.Sprint(span.Name(), span.Attributes(), span.Status(), span.Events()); strings.Contains(shown, secret) {
				t.Errorf("the span shows what the call was about: %s", shown)
			}
		})
	}
}

func TestSpansNestAsCallsDo(t *testing.T) {
	s := newTelescope(t, tools.Options{})
	tools.Add(s.Registry, tools.Tool{Name: "outer", Description: "calls"},
		func(ctx context.Context, call *tools.Call, _ struct{}) (string, error) {
			call.Registry().Call(ctx, tools.Request{ID: call.ID + ":1", Tool: "delete_path", Args: json.RawMessage(`{"path":"x"}`), Parent: call})
			return "", nil
		})
	ctx, request := trace.NewTracerProvider().Tracer("test").Start(t.Context(), "request")
	s.View(tools.Only("outer", "delete_path")).Call(ctx, tools.Request{Tool: "outer", Session: s.session})
	ended := s.spans.Ended()
	if len(ended) != 2 || ended[0].Parent().SpanID() != ended[1].SpanContext().SpanID() || ended[1].Parent().SpanID() != request.SpanContext().SpanID() {
		t.Errorf("%d spans ended; want the inner call's in the outer's in the caller's", len(ended))
	}
}

// counts are the numbers of a metric by the values of its attributes.
func (s *telescope) counts(t *testing.T, name string) map[string]int {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := s.metrics.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					got[words(p.Attributes)] = int(p.Value)
				}
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					got[words(p.Attributes)] = int(p.Count)
				}
			}
		}
	}
	return got
}

func words(set attribute.Set) string {
	var list []string
	for _, kv := range set.ToSlice() {
		list = append(list, kv.Value.String())
	}
	return strings.Join(list, " ")
}

func TestCallsAreCountedByToolAndCode(t *testing.T) {
	s := newTelescope(t, tools.Options{})
	s.delete(t.Context())
	s.delete(t.Context())
	for _, made := range []string{"up", "this", "too"} {
		s.Call(t.Context(), tools.Request{Tool: made, Session: s.session})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.delete(ctx)
	want := map[string]int{"OK delete_path": 2, "UNKNOWN_TOOL unknown": 3, "ABORTED_BEFORE_DISPATCH delete_path": 1}
	for _, name := range []string{"dsh.tool.calls", "dsh.tool.duration"} {
		if diff := cmp.Diff(want, s.counts(t, name)); diff != "" {
			t.Errorf("%s counts otherwise:\n%s", name, diff)
		}
	}
}

func TestQuestionsAreCountedByOutcome(t *testing.T) {
	answers := []policy.Outcome{policy.AllowedOnce, policy.Rejected, policy.Rejected}
	s := newTelescope(t, tools.Options{Approvals: policy.NewApprovals(0, policy.Answerer{Name: "stub",
		Answer: func(context.Context, policy.Question) (policy.Outcome, error) {
			next := answers[0]
			answers = answers[1:]
			return next, nil
		}})})
	s.Listen("asks", func(context.Context, tools.Call, func() tools.Verdict) tools.Verdict {
		return tools.Verdict{Reason: "sure?"}
	})
	for range 3 {
		s.delete(t.Context())
	}
	if diff := cmp.Diff(map[string]int{"allowed-once": 1, "rejected": 2}, s.counts(t, "dsh.approval.questions")); diff != "" {
		t.Errorf("questions are counted otherwise:\n%s", diff)
	}
}

func TestARegistryReportsToAGlobalProviderInstalledLater(t *testing.T) {
	r := family(nil)
	spans := tracetest.NewSpanRecorder()
	provider := trace.NewTracerProvider(trace.WithSpanProcessor(spans))
	otel.SetTracerProvider(provider)
	defer provider.Shutdown(context.Background())
	said(t, r, "a")
	if n := len(spans.Ended()); n != 1 {
		t.Errorf("%d spans reached the provider, want 1", n)
	}
}

// brokenTracer panics on every call.
type brokenTracer struct{ noop.TracerProvider }

func (brokenTracer) Tracer(string, ...api.TracerOption) api.Tracer { return brokenStart{} }

type brokenStart struct{ noop.Tracer }

func (brokenStart) Start(context.Context, string, ...api.SpanStartOption) (context.Context, api.Span) {
	panic("no tracing today")
}

func TestABrokenProviderChangesNothing(t *testing.T) {
	var told strings.Builder
	r := newRoad(t, policy.Never, &tools.Options{TracerProvider: brokenTracer{}, Logger: slog.New(slog.NewTextHandler(&told, nil))})
	if got := r.delete(t.Context()); got.Error != nil || len(r.got) != 1 {
		t.Errorf("got %v", got.Error)
	}
	if !strings.Contains(told.String(), "no tracing today") {
		t.Errorf("the logger was told %q", told.String())
	}
}
