package ptc

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

//go:embed run_code.md
var description string

// input is what a model gives run_code.
type input struct {
	Code        string `json:"code" jsonschema:"the program: TypeScript or JavaScript, the body of an async function"`
	Description string `json:"description,omitempty" jsonschema:"a few words for the user: what the program does"`
	TimeoutMS   *int64 `json:"timeout_ms,omitempty" jsonschema:"limit of the program's own computing time, in milliseconds; time spent in tools does not count"`
}

// ProgramFailed is the code of a run that failed; its details are the Report.
const ProgramFailed tools.Code = "PROGRAM_FAILED"

// Register adds run_code to a registry. Its programs call the tools of the
// registry that run_code itself was called through, a view where it was one.
func Register(registry *tools.Registry, o Options) {
	if o.Engine == nil {
		panic("ptc: Options.Engine is needed")
	}
	if o.InFlight <= 0 {
		o.InFlight = defaultInFlight
	}
	p := &programs{options: o}
	t := tools.New(tools.Tool{
		Name:        tools.RunCode,
		Description: description,
		Output:      json.RawMessage(`{"type":"object"}`),
		MaxValue:    o.Limits.WithDefaults().OutputBytes*2 + 16<<20,
	}, p.handle)
	t.Render = tools.Renderer(func(_ input, r Report) []tools.Content { return []tools.Content{tools.Text(render(r))} })
	registry.AddProgram(t)
}

type programs struct{ options Options }

func (p *programs) handle(ctx context.Context, call *tools.Call, in input) (Report, error) {
	run := runOf(ctx)
	limits := tighten(p.options.Limits, run.Limits)
	if in.TimeoutMS != nil {
		if *in.TimeoutMS <= 0 {
			return Report{}, &tools.Error{Code: tools.InvalidArgs, Message: fmt.Sprintf("timeout_ms is %d, want more than 0", *in.TimeoutMS)}
		}
		smaller(&limits.Compute, time.Duration(min(*in.TimeoutMS, limits.Compute.Milliseconds()))*time.Millisecond)
	}
	program := runtime.Program{
		Source: in.Code, Name: run.Name, Args: run.Args, Limits: limits, Seed: newSeed(), Clock: time.Now(),
	}
	ctx = policy.WithHumanClock(ctx, &policy.HumanClock{})
	r := newExecution(ctx, p, call, run)
	return r.run(program)
}

func newSeed() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// startEvent is the data of ptc/start.
type startEvent struct {
	CallID    string          `json:"call_id"`
	Program   *session.Ref    `json:"program"`
	Name      string          `json:"name,omitempty"`
	Language  string          `json:"language"`
	Args      json.RawMessage `json:"args,omitempty"`
	Seed      string          `json:"seed"` // decimal; a JSON number cannot hold it
	Clock     time.Time       `json:"clock"`
	ToolsHash string          `json:"tools_hash"`
	Limits    limitsEvent     `json:"limits"`
}

type limitsEvent struct {
	ComputeMS   int64 `json:"compute_ms"`
	WallMS      int64 `json:"wall_ms"`
	Memory      int64 `json:"memory_bytes"`
	Calls       int   `json:"calls"`
	InFlight    int   `json:"in_flight"`
	CallBytes   int   `json:"call_bytes"`
	OutputBytes int   `json:"output_bytes"`
}

// logEvent is the data of ptc/log.
type logEvent struct {
	CallID string `json:"call_id"`
	runtime.Line
}

// endEvent is the data of ptc/end; the value is in the tool/result.
type endEvent struct {
	CallID      string              `json:"call_id"`
	Status      RunStatus           `json:"status"`
	Failure     *runtime.Failure    `json:"failure,omitempty"`
	Usage       Usage               `json:"usage"`
	Confinement runtime.Confinement `json:"confinement"`
}

func (p *programs) logStart(call *tools.Call, program runtime.Program) error {
	if call.Session == nil {
		return nil
	}
	log := call.Session.Log()
	ref, err := log.Put([]byte(program.Source))
	if err != nil {
		return err
	}
	l := program.Limits
	_, err = log.Append(session.ProgramStart, startEvent{
		CallID: call.ID, Program: &ref, Name: program.Name, Language: string(runtime.TypeScript), Args: program.Args,
		Seed: strconv.FormatUint(program.Seed, 10), Clock: program.Clock.UTC(), ToolsHash: toolsHash(call.Registry()),
		Limits: limitsEvent{
			ComputeMS: l.Compute.Milliseconds(), WallMS: l.Wall.Milliseconds(), Memory: l.Memory, Calls: l.Calls,
			InFlight: p.options.InFlight, CallBytes: l.CallBytes, OutputBytes: l.OutputBytes,
		},
	})
	return err
}

// toolsHash identifies the tools that a program can call.
func toolsHash(r *tools.Registry) string {
	h := sha256.New()
	for _, t := range r.Tools() {
		fmt.Fprintf(h, "%s\x00%s\x00%s\x00", t.Name, t.Input, t.Output)
	}
	return hex.EncodeToString(h.Sum(nil))
}
