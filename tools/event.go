package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
)

// inlineLimit is how many bytes of arguments, value, content or details stand
// in a log line; more goes to a blob.
const inlineLimit = 64 << 10

// callEvent is the data of tool/call.
type callEvent struct {
	CallID   string          `json:"call_id"`
	RootID   string          `json:"root_id"`
	ParentID string          `json:"parent_id,omitempty"`
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"args,omitempty"`
	// ArgsText is the start of arguments that are no JSON or are too long.
	ArgsText string        `json:"args_text,omitempty"`
	ArgsRef  *session.Ref  `json:"args_ref,omitempty"`
	Caller   policy.Caller `json:"caller"`
}

// startedEvent is the data of tool/started.
type startedEvent struct {
	CallID string `json:"call_id"`
}

// resultEvent is the data of tool/result.
type resultEvent struct {
	CallID      string              `json:"call_id"`
	Value       json.RawMessage     `json:"value,omitempty"`
	ValueRef    *session.Ref        `json:"value_ref,omitempty"`
	Content     json.RawMessage     `json:"content,omitempty"`
	ContentRef  *session.Ref        `json:"content_ref,omitempty"`
	Error       *errorEvent         `json:"error,omitempty"`
	DeniedBy    *DeniedBy           `json:"denied_by,omitempty"`
	Confinement *policy.Confinement `json:"confinement,omitempty"`
	Started     bool                `json:"started"`
	Attempts    int                 `json:"attempts,omitempty"`
	DurationMS  int64               `json:"duration_ms"`
}

type errorEvent struct {
	Code       Code            `json:"code"`
	Message    string          `json:"message"`
	Details    json.RawMessage `json:"details,omitempty"`
	DetailsRef *session.Ref    `json:"details_ref,omitempty"`
}

func newCallEvent(log *session.Log, call *Call) (callEvent, error) {
	e := callEvent{CallID: call.ID, RootID: call.RootID, ParentID: call.ParentID, Tool: call.Tool, Caller: call.Caller}
	if len(call.Args) <= inlineLimit && json.Valid(call.Args) {
		e.Args = call.Args
		return e, nil
	}
	e.ArgsText = strings.ToValidUTF8(string(call.Args[:min(len(call.Args), inlineLimit)]), "\uFFFD")
	ref, err := log.Put(call.Args)
	e.ArgsRef = &ref
	return e, err
}

func newResultEvent(log *session.Log, r Result) (e resultEvent, err error) {
	e = resultEvent{
		CallID: r.Meta.CallID, DeniedBy: r.Meta.DeniedBy, Confinement: r.Meta.Confinement,
		Started: r.Meta.Started, Attempts: r.Meta.Attempts, DurationMS: r.Meta.DurationMS,
	}
	if e.Value, e.ValueRef, err = inline(log, r.Value); err != nil {
		return e, err
	}
	content, err := marshal(append(r.Content[:len(r.Content):len(r.Content)], r.Meta.Context...))
	if err != nil {
		return e, err
	}
	if e.Content, e.ContentRef, err = inline(log, content); err != nil {
		return e, err
	}
	if r.Error != nil {
		e.Error = &errorEvent{Code: r.Error.Code, Message: r.Error.Message}
		e.Error.Details, e.Error.DetailsRef, err = inline(log, r.Error.Details)
	}
	return e, err
}

// inline returns raw itself or, when it is long, the blob that holds it.
func inline(log *session.Log, raw json.RawMessage) (json.RawMessage, *session.Ref, error) {
	if len(raw) <= inlineLimit {
		return raw, nil, nil
	}
	ref, err := log.Put(raw)
	return nil, &ref, err
}

// marshal encodes v without escaping what only HTML needs escaped.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
