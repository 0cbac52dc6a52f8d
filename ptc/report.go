package ptc

import (
	"encoding/json"

	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/tools"
)

// Report is what is known about one run: the value of run_code, or the details
// of its error.
type Report struct {
	Status  RunStatus        `json:"status"`
	Value   json.RawMessage  `json:"value,omitempty"`
	Failure *runtime.Failure `json:"failure,omitempty"`
	Logs    []runtime.Line   `json:"logs"`
	// LogsTrimmed counts printed lines that were left out in the middle.
	LogsTrimmed int         `json:"logs_trimmed,omitempty"`
	Calls       []SubCall   `json:"calls"`
	Effects     []Effect    `json:"effects"`
	SafeToRetry bool        `json:"safe_to_retry"`
	Usage       Usage       `json:"usage"`
	Saved       Saved       `json:"saved"`
	Confinement Confinement `json:"confinement"`
}

// Confinement is the runtime's word on what the program ran in.
type Confinement = runtime.Confinement

// RunStatus says how a run ended.
type RunStatus string

// The statuses of a run.
const (
	RunOK     RunStatus = "ok"
	RunFailed RunStatus = "failed"
)

// SubCall is one call that the program made.
type SubCall struct {
	ID         string          `json:"id"`
	Tool       string          `json:"tool"`
	Status     CallStatus      `json:"status"`
	Code       tools.Code      `json:"code,omitempty"`
	DurationMS int64           `json:"duration_ms"`
	DeniedBy   *tools.DeniedBy `json:"denied_by,omitempty"`
}

// CallStatus says how a sub-call ended.
type CallStatus string

// The statuses of a sub-call.
const (
	CallOK         CallStatus = "ok"
	CallError      CallStatus = "error"
	CallDenied     CallStatus = "denied"
	CallCancelled  CallStatus = "cancelled"
	CallNotStarted CallStatus = "not_started"
)

// Effect is a call that may have changed something.
type Effect struct {
	ID    string      `json:"id"`
	Tool  string      `json:"tool"`
	State EffectState `json:"state"`
}

// EffectState says what is known of a call that may change something.
type EffectState string

// The states of an effect.
const (
	Committed        EffectState = "committed"
	EffectNotStarted EffectState = "not_started"
	Unknown          EffectState = "unknown"
)

// Usage is what a run cost, in milliseconds and bytes.
type Usage struct {
	ComputeMS  float64 `json:"compute_ms"`
	HostMS     float64 `json:"host_ms"`
	HumanMS    float64 `json:"human_ms"`
	WallMS     float64 `json:"wall_ms"`
	Calls      int     `json:"calls"`
	PeakMemory int64   `json:"peak_memory_bytes"`
	BytesIn    int64   `json:"bytes_in"`
	BytesOut   int64   `json:"bytes_out"`
}

// Saved is what the model was spared: the bytes of values that stayed in the
// program against the bytes that came back, and the round trips that the calls
// would have been.
type Saved struct {
	BytesKept     int64 `json:"bytes_kept"`
	BytesReturned int64 `json:"bytes_returned"`
	RoundTrips    int   `json:"round_trips"`
}

// statusOf classifies the result of a sub-call.
func statusOf(r tools.Result) CallStatus {
	switch {
	case r.Error == nil:
		return CallOK
	case r.Error.Code == tools.AbortedBeforeDispatch:
		return CallNotStarted
	case r.Error.Code == tools.Aborted:
		return CallCancelled
	case denied(r):
		return CallDenied
	default:
		return CallError
	}
}

// denied reports whether a stage or the sandbox refused the call. A refusal of
// malformed arguments is an error of the program, not a denial.
func denied(r tools.Result) bool {
	if by := r.Meta.DeniedBy; by != nil {
		return by.Stage != tools.StageMaterialise
	}
	return r.Error != nil && r.Meta.Confinement != nil && r.Meta.Confinement.Denied
}

// mayChange reports whether the call's tool changes anything at all.
func (s *subCall) mayChange() bool { return s.tool.Name != "" && s.tool.Effect != tools.NoEffect }

// effectOf says what is known of a call that may change something.
func effectOf(s *subCall) EffectState {
	err := s.result.Error
	switch {
	case !s.result.Meta.Started:
		return EffectNotStarted
	case err == nil, s.result.Meta.Returned:
		return Committed
	case s.tool.Atomic || err.Code == tools.SandboxUnavailable:
		return EffectNotStarted
	default:
		return Unknown
	}
}

func newUsage(u runtime.Usage) Usage {
	return Usage{
		ComputeMS: float64(u.Compute.Microseconds()) / 1000, HostMS: float64(u.Host.Microseconds()) / 1000,
		HumanMS: float64(u.Human.Microseconds()) / 1000, WallMS: float64(u.Wall.Microseconds()) / 1000,
		Calls: u.Calls, PeakMemory: u.PeakMemory, BytesIn: u.BytesIn, BytesOut: u.BytesOut,
	}
}

// ReportOf returns what is known about the run behind a result of run_code.
// The error is the result's own, for a call that did not become a run.
func ReportOf(result tools.Result) (Report, error) {
	raw := result.Value
	if result.Error != nil {
		raw = result.Error.Details
	}
	var r Report
	if err := json.Unmarshal(raw, &r); err == nil && r.Status != "" {
		return r, nil
	}
	if result.Error != nil {
		return Report{}, result.Error
	}
	return Report{}, &tools.Error{Code: tools.InvalidToolOutput, Message: "the result of run_code is no report"}
}
