package policy

import (
	"time"

	"github.com/dsh-run/dsh/session"
)

// questionID pairs the events of one question.
type questionID struct {
	ID     string `json:"id"`
	CallID string `json:"call_id"`
}

// asked is the data of approval/asked: what was shown that is not in tool/call.
type asked struct {
	questionID
	Tool     string `json:"tool"`
	Reason   string `json:"reason"`
	Mode     Mode   `json:"mode"`
	To       Mode   `json:"to"`
	Confined bool   `json:"confined"`
	Denied   string `json:"denied_call,omitempty"`
	// Preview, or the blob that holds a long one.
	Preview    string       `json:"preview,omitempty"`
	PreviewRef *session.Ref `json:"preview_ref,omitempty"`
	Approval   Approval     `json:"approval"`
}

// decided is the data of approval/decided and, without Why, approval/late.
type decided struct {
	questionID
	Outcome Outcome `json:"outcome"`
	By      string  `json:"by"`
	Why     string  `json:"why,omitempty"`
	// DurationMS counts from when the question was put; 0: it never was.
	DurationMS int64 `json:"duration_ms"`
}

// inlinePreview is how many bytes of a preview stand in a log line.
const inlinePreview = 64 << 10

// logAsked writes the question, durably.
func (s *Session) logAsked(q Question, policy Approval) error {
	event := asked{
		questionID: questionID{q.ID, q.CallID}, Tool: q.Tool, Reason: q.Reason, Mode: q.Mode, To: q.To,
		Confined: q.Confined, Denied: q.Denied, Preview: q.Preview, Approval: policy,
	}
	if len(q.Preview) > inlinePreview {
		ref, err := s.log.Put([]byte(q.Preview))
		if err != nil {
			return err
		}
		event.Preview, event.PreviewRef = "", &ref
	}
	if _, err := s.log.Append(session.ApprovalAsked, event); err != nil {
		return err
	}
	return s.log.Sync()
}

// logDecided writes how the question ended.
func (s *Session) logDecided(id questionID, d Decision, after time.Duration) error {
	_, err := s.log.Append(session.ApprovalDecided, decided{id, d.Outcome, d.By, d.Why, after.Milliseconds()})
	return err
}

// logLate writes an answer that came after the question had ended. A log that
// is closed by then has no place for it, and nothing depends on it.
func (s *Session) logLate(id questionID, outcome Outcome, by string, after time.Duration) {
	if outcome != AllowedOnce && outcome != Rejected {
		return
	}
	_, _ = s.log.Append(session.ApprovalLate, decided{questionID: id, Outcome: outcome, By: by, DurationMS: after.Milliseconds()})
}
