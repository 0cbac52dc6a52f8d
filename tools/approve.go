package tools

import (
	"context"
	"fmt"

	"github.com/dsh-run/dsh/policy"
)

// checkWidening refuses a malformed request for a wider mode, and one that is
// not wider, before anyone is bothered.
func (e *execution) checkWidening(context.Context) *Error {
	w, err := e.widening()
	if err == nil && w != nil {
		err = w.Check(e.call.Mode)
	}
	if err != nil {
		return e.deny(StageApproval, "", &Error{Code: InvalidArgs, Message: err.Error()})
	}
	return nil
}

func (e *execution) widening() (w *policy.Widening, err error) {
	if e.tool.Widen == nil {
		return nil, nil
	}
	err = contain(func() (err error) {
		w, err = e.tool.Widen(e.call.frozen().Args)
		return err
	})
	return w, err
}

// approve puts the question that a listener or a widening raised. A yes to a
// widening stamps the granted mode on this call.
func (e *execution) approve(ctx context.Context) *Error {
	w, err := e.widening()
	if err != nil {
		return e.deny(StageApproval, "", &Error{Code: InvalidArgs, Message: err.Error()})
	}
	if w == nil && e.verdict.Judgement != AskPerson {
		return nil
	}
	q := e.question(w)
	if err := e.put(ctx, q); err != nil {
		return err
	}
	e.call.Mode = q.To
	return nil
}

func (e *execution) question(w *policy.Widening) policy.Question {
	q := policy.Question{
		CallID: e.call.ID, Tool: e.call.Tool, Args: e.call.frozen().Args, Caller: e.call.Caller,
		Reason: e.verdict.Reason, Mode: e.call.Mode, To: e.call.Mode, Confined: e.call.Confined,
	}
	if w == nil {
		return q
	}
	q.To = w.Target
	if q.Reason != "" {
		q.Reason += "; "
	}
	q.Reason += w.Justification
	if e.call.Session != nil {
		q.Denied = e.call.Session.earlierDenial(e.call.Tool, e.call.Args)
	}
	return q
}

func (e *execution) put(ctx context.Context, q policy.Question) *Error {
	approvals := e.registry.options.Approvals
	switch {
	case approvals == nil:
		return e.deny(StageApproval, "", &Error{Code: ApprovalUnavailable, Message: "refused: the call needs an approval, and there is no approval service"})
	case e.call.Session == nil:
		return e.deny(StageApproval, "", &Error{Code: ApprovalUnavailable, Message: "refused: the call needs an approval, and it has no session to route the question through"})
	}
	d, err := approvals.Ask(ctx, e.call.Session.Session, q)
	e.countQuestion(ctx, d.Outcome)
	if err != nil {
		return e.deny(StageApproval, "", &Error{Code: ApprovalUnavailable, Message: "refused: " + err.Error()})
	}
	if d.Outcome == policy.AllowedOnce {
		return nil
	}
	if d.Outcome == policy.Cancelled && ctx.Err() != nil {
		return abortedBefore(ctx)
	}
	return e.deny(StageApproval, d.By, refusal(d))
}

// refusal words an outcome that does not grant.
func refusal(d policy.Decision) *Error {
	why := d.Why
	if why != "" {
		why = ": " + why
	}
	switch d.Outcome {
	case policy.Rejected:
		if d.By == "policy" {
			return &Error{Code: ApprovalRejected, Message: "refused" + why}
		}
		return &Error{Code: ApprovalRejected, Message: fmt.Sprintf("refused: the answer was no%s. It is final for this call; do not repeat it", why)}
	case policy.Cancelled:
		return &Error{Code: ApprovalCancelled, Message: "refused: the question was withdrawn" + why}
	default:
		return &Error{Code: ApprovalUnavailable, Message: "refused: the call needs an approval, and nobody could give it" + why}
	}
}
