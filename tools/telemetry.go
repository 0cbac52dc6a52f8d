package tools

import (
	"context"
	"regexp"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracing "go.opentelemetry.io/otel/trace/noop"

	"github.com/dsh-run/dsh/policy"
)

// TelemetryScope is the instrumentation scope of the spans and metrics of calls:
//
//	span execute_tool NAME          one call, from before its log entry to after its observers
//	counter dsh.tool.calls          calls, by gen_ai.tool.name and dsh.code
//	histogram dsh.tool.duration     seconds of a call, by the same
//	counter dsh.approval.questions  questions to approvals, by dsh.approval.outcome
//
// A span has the attributes gen_ai.operation.name, gen_ai.tool.name,
// gen_ai.tool.call.id, dsh.caller, dsh.code, dsh.started and dsh.sandbox.mode, and
// where they apply dsh.denied.stage, dsh.sandbox.backend and error.type. The
// name of a tool that does not exist is "unknown", a code that does not look
// like one is "OTHER", that of a success is "OK". Neither has arguments, values
// or messages. A provider that panics during a call changes nothing about the
// call: the registry's Logger is told.
const TelemetryScope = "github.com/dsh-run/dsh/tools"

// telemetry is what a registry and its views report to.
type telemetry struct {
	tracer    trace.Tracer
	calls     metric.Int64Counter
	duration  metric.Float64Histogram
	questions metric.Int64Counter
}

// newTelemetry reports to the providers of o. The global ones pass on to what
// an embedder installs later.
func newTelemetry(o Options) *telemetry {
	tracers, meters := o.TracerProvider, o.MeterProvider
	if tracers == nil {
		tracers = otel.GetTracerProvider()
	}
	if meters == nil {
		meters = otel.GetMeterProvider()
	}
	m := meters.Meter(TelemetryScope)
	calls, err1 := m.Int64Counter("dsh.tool.calls", metric.WithUnit("{call}"), metric.WithDescription("Tool calls that ended."))
	duration, err2 := m.Float64Histogram("dsh.tool.duration", metric.WithUnit("s"), metric.WithDescription("Time of tool calls on the whole road."),
		metric.WithExplicitBucketBoundaries(.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 300, 600))
	questions, err3 := m.Int64Counter("dsh.approval.questions", metric.WithUnit("{question}"), metric.WithDescription("Questions that approvals decided."))
	return &telemetry{
		tracer:    tracers.Tracer(TelemetryScope),
		calls:     usable[metric.Int64Counter](calls, err1, noop.Int64Counter{}),
		duration:  usable[metric.Float64Histogram](duration, err2, noop.Float64Histogram{}),
		questions: usable[metric.Int64Counter](questions, err3, noop.Int64Counter{}),
	}
}

// usable replaces an instrument that a provider refuses.
func usable[I any](instrument I, err error, replacement I) I {
	if err != nil {
		otel.Handle(err)
		return replacement
	}
	return instrument
}

// beginSpan starts the span of the call; the calls that its body makes nest in it.
func (e *execution) beginSpan(ctx context.Context) (context.Context, trace.Span) {
	name := e.knownTool()
	within, span := ctx, trace.Span(tracing.Span{})
	e.telling(func() {
		within, span = e.registry.telemetry.tracer.Start(ctx, "execute_tool "+name, trace.WithAttributes(
			attribute.String("gen_ai.operation.name", "execute_tool"),
			attribute.String("gen_ai.tool.name", name),
		))
	})
	return within, span
}

// telling contains what the providers do.
func (e *execution) telling(f func()) {
	if err := contain(func() error { f(); return nil }); err != nil {
		e.complain("telemetry failed", TelemetryScope, err)
	}
}

// report ends the span and counts the call.
func (e *execution) report(ctx context.Context, span trace.Span, r Result) {
	e.telling(func() { e.endSpan(span, r) })
	e.telling(func() { e.count(ctx, codeWord(r.Error)) })
}

func (e *execution) endSpan(span trace.Span, r Result) {
	defer span.End()
	code := codeWord(r.Error)
	if span.IsRecording() {
		span.SetAttributes(e.attributes(r, code)...)
		if r.Error != nil {
			span.SetStatus(codes.Error, code)
		}
	}
}

func (e *execution) count(ctx context.Context, code string) {
	t := e.registry.telemetry
	if ctx = context.WithoutCancel(ctx); !t.calls.Enabled(ctx) && !t.duration.Enabled(ctx) {
		return
	}
	by := metric.WithAttributeSet(attribute.NewSet(
		attribute.String("gen_ai.tool.name", e.knownTool()), attribute.String("dsh.code", code)))
	t.calls.Add(ctx, 1, by)
	t.duration.Record(ctx, time.Since(e.start).Seconds(), by)
}

func (e *execution) attributes(r Result, code string) []attribute.KeyValue {
	list := []attribute.KeyValue{
		attribute.String("gen_ai.tool.call.id", e.call.ID),
		attribute.String("dsh.caller", string(e.call.Caller.Kind)),
		attribute.String("dsh.code", code),
		attribute.Bool("dsh.started", r.Meta.Started),
		attribute.String("dsh.sandbox.mode", e.call.Mode.String()),
	}
	if r.Error != nil {
		list = append(list, attribute.String("error.type", code))
	}
	if by := r.Meta.DeniedBy; by != nil {
		list = append(list, attribute.String("dsh.denied.stage", string(by.Stage)))
	}
	if c := r.Meta.Confinement; c != nil {
		list = append(list, attribute.String("dsh.sandbox.backend", c.Backend))
	}
	return list
}

// countQuestion counts how a question ended.
func (e *execution) countQuestion(ctx context.Context, outcome policy.Outcome) {
	e.telling(func() {
		e.registry.telemetry.questions.Add(context.WithoutCancel(ctx), 1,
			metric.WithAttributes(attribute.String("dsh.approval.outcome", outcome.String())))
	})
}

// knownTool is the name of the tool, bounded: a model can make up any other.
func (e *execution) knownTool() string {
	if e.tool == nil {
		return "unknown"
	}
	return e.tool.Name
}

var codePattern = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)

// codeWord is the code of a result. Tools choose codes; what does not look like
// one might be a piece of a value.
func codeWord(err *Error) string {
	switch {
	case err == nil:
		return "OK"
	case !codePattern.MatchString(string(err.Code)):
		return "OTHER"
	default:
		return string(err.Code)
	}
}
