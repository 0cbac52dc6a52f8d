package tools

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/dsh-run/dsh/policy"
)

// Code names a failure, for programs to branch on.
type Code string

// The codes of the pipeline; tools add their own.
const (
	UnknownTool           Code = "UNKNOWN_TOOL"
	InvalidArgs           Code = "INVALID_ARGS"
	ValueTooLarge         Code = "VALUE_TOO_LARGE"
	InvalidToolOutput     Code = "INVALID_TOOL_OUTPUT"
	DeniedByListener      Code = "DENIED_BY_LISTENER"
	DeniedByGuard         Code = "DENIED_BY_GUARD"
	DeniedByReview        Code = "DENIED_BY_REVIEW"
	ApprovalRejected      Code = "APPROVAL_REJECTED"
	ApprovalCancelled     Code = "APPROVAL_CANCELLED"
	ApprovalUnavailable   Code = "APPROVAL_UNAVAILABLE"
	AbortedBeforeDispatch Code = "ABORTED_BEFORE_DISPATCH"
	Aborted               Code = "ABORTED"
	ToolTimeout           Code = "TOOL_TIMEOUT"
	ToolFailed            Code = "TOOL_FAILED"
	SandboxUnavailable    Code = "SANDBOX_UNAVAILABLE"
	ToolNotStarted        Code = "TOOL_NOT_STARTED"
	ToolOutcomeUnknown    Code = "TOOL_OUTCOME_UNKNOWN"
	BlockedByPost         Code = "BLOCKED_BY_POST_EXECUTE"
	LogFailed             Code = "LOG_FAILED"
)

// Error is a failed call. Tools return one to choose its code.
type Error struct {
	Code    Code            `json:"code"`
	Message string          `json:"message"`
	Details json.RawMessage `json:"details,omitempty"`
	// Retryable says that trying the same call again may succeed.
	Retryable bool `json:"retryable,omitempty"`
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Result is the end of one call. Value and Error exclude each other.
type Result struct {
	Value   json.RawMessage `json:"value,omitempty"`
	Content []Content       `json:"content"`
	Error   *Error          `json:"error,omitempty"`
	Meta    Meta            `json:"meta"`
}

// Meta are the facts about a call that are neither its value nor its failure.
type Meta struct {
	CallID string `json:"call_id"`
	// DeniedBy is set when a stage refused the call.
	DeniedBy *DeniedBy `json:"denied_by,omitempty"`
	// Confinement is what confined the body, where the tool reports it.
	Confinement *policy.Confinement `json:"confinement,omitempty"`
	DurationMS  int64               `json:"duration_ms"`
	// Started says whether the body began.
	Started bool `json:"started"`
	// Returned says whether the body ended without an error, whatever became of
	// its value afterwards.
	Returned bool `json:"-"`
	// Attempts is how often the body began, where that was more than once.
	Attempts int `json:"attempts,omitempty"`
	// Context are blocks that post-execute steps attached.
	Context []Content `json:"context,omitempty"`
}

// DeniedBy names who refused a call.
type DeniedBy struct {
	Stage Stage  `json:"stage"`
	Rule  string `json:"rule,omitempty"`
}

// Stage of the pipeline that can refuse a call.
type Stage string

// The refusing stages.
const (
	StageMaterialise Stage = "materialise"
	StageListener    Stage = "pre-execute"
	StageGuard       Stage = "guard"
	StageApproval    Stage = "approval"
	StagePost        Stage = "post-execute"
)

// fail makes the result a failure. Details that are no JSON are left out, so
// that the failure itself can be logged.
func (r *Result) fail(err *Error) {
	failed := err.copied()
	if !json.Valid(failed.Details) {
		failed.Details = nil
	}
	r.Value, r.Error, r.Content = nil, failed, []Content{Text(failed.Error())}
}

// code of the failure, empty for a success.
func (r Result) code() Code {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

// frozen is a copy that shares nothing with r.
func (r Result) frozen() Result {
	r.Value = bytes.Clone(r.Value)
	r.Content = copiedContent(r.Content)
	r.Error = r.Error.copied()
	r.Meta.DeniedBy = copied(r.Meta.DeniedBy)
	r.Meta.Confinement = copiedConfinement(r.Meta.Confinement)
	r.Meta.Context = copiedContent(r.Meta.Context)
	return r
}

func (e *Error) copied() *Error {
	c := copied(e)
	if c != nil {
		c.Details = bytes.Clone(c.Details)
	}
	return c
}

func copiedConfinement(c *policy.Confinement) *policy.Confinement {
	c = copied(c)
	if c != nil {
		c.Reasons = slices.Clone(c.Reasons)
	}
	return c
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
