package tools

import (
	"context"
	"fmt"

	"github.com/dsh-run/dsh/policy"
)

// checkWidening reads the wider mode that the arguments ask for, and refuses a
// malformed request and one that is not wider, before anyone is bothered.
func (e *execution) checkWidening(context.Context) *Error {
	w, err := e.readWidening()
	if err == nil && w != nil {
		err = w.Check(e.call.Mode)
	}
	if err != nil {
		return e.deny(StageApproval, "", &Error{Code: InvalidArgs, Message: fmt.Sprint(err)})
	}
	e.wider = w
	return nil
}

func (e *execution) readWidening() (w *policy.Widening, err error) {
	if e.tool.Widen == nil {
		return nil, nil
	}
	err = contain(func() (err error) {
		w, err = e.tool.Widen(e.call.frozen().Args)
		return err
	})
	return w, err
}

// approve puts the question that a listener or a widening raised; an allow from
// a listener does not answer the latter. A yes stamps the mode that was asked
// for on this call, and on nothing else.
func (e *execution) approve(ctx context.Context) *Error {
	if e.wider == nil && e.verdict.Judgement != AskPerson {
		return nil
	}
	if err := e.answerable(); err != nil {
		return err
	}
	q := e.question()
	if err := e.requireDenial(q); err != nil {
		return err
	}
	q.Preview = e.preview(ctx)
	if err := e.put(ctx, q); err != nil {
		return err
	}
	e.call.Mode = q.To
	return nil
}

// wanted is the call in the mode that it asks for.
func (e *execution) wanted() Call {
	call := e.call.frozen()
	if e.wider != nil {
		call.Mode = e.wider.Target
	}
	return call
}

// answerable refuses a call whose question would reach nobody.
func (e *execution) answerable() *Error {
	switch {
	case e.registry.options.Approvals == nil:
		return e.deny(StageApproval, "", &Error{Code: ApprovalUnavailable, Message: "refused: the call needs an approval, and there is no approval service"})
	case e.call.Session == nil:
		return e.deny(StageApproval, "", &Error{Code: ApprovalUnavailable, Message: "refused: the call needs an approval, and it has no session to route the question through"})
	}
	return nil
}

func (e *execution) question() policy.Question {
	q := policy.Question{
		CallID: e.call.ID, Tool: e.call.Tool, Args: e.call.frozen().Args, Caller: e.call.Caller,
		Reason: e.verdict.Reason, Mode: e.call.Mode, To: e.call.Mode, Confined: e.call.Confined,
	}
	if e.wider == nil {
		return q
	}
	q.To = e.wider.Target
	if q.Reason != "" {
		q.Reason += "; "
	}
	q.Reason += e.wider.Justification
	q.Denied = e.call.Session.earlierDenial(e.call.Tool, e.call.Args)
	return q
}

// requireDenial is the rule that a wider mode is asked for only after a denial.
const requireDenial = "require_denial"

func (e *execution) requireDenial(q policy.Question) *Error {
	if !e.registry.options.RequireDenial || !q.Widens() || q.Denied != "" {
		return nil
	}
	return e.deny(StageApproval, requireDenial, &Error{Code: ApprovalRejected,
		Message: "refused: a wider mode is asked for only after the sandbox denied this call, and no such denial is in the log; run it without sandbox_permissions and justification first"})
}

// preview is what the tool shows of the call, for a person who will be asked.
func (e *execution) preview(ctx context.Context) (text string) {
	if e.tool.Preview == nil || e.call.Session.State().Approval != policy.Ask {
		return ""
	}
	err := contain(func() (err error) {
		seen := e.wanted()
		text, err = e.tool.Preview(ctx, &seen)
		return err
	})
	if err != nil {
		return "no preview: " + err.Error()
	}
	return text
}

func (e *execution) put(ctx context.Context, q policy.Question) *Error {
	d, err := e.registry.options.Approvals.Ask(ctx, e.call.Session.Session, q)
	e.countQuestion(ctx, d.Outcome)
	switch {
	case err != nil:
		return e.deny(StageApproval, "", &Error{Code: ApprovalUnavailable, Message: "refused: " + err.Error()})
	case d.Outcome == policy.AllowedOnce:
		return nil
	case d.Outcome == policy.Cancelled && ctx.Err() != nil:
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
	switch {
	case d.Outcome == policy.Rejected && d.By == policy.ByPolicy:
		return &Error{Code: ApprovalRejected, Message: "refused" + why}
	case d.Outcome == policy.Rejected:
		return &Error{Code: ApprovalRejected, Message: fmt.Sprintf("refused: the user said no%s. It is final for this call; do not repeat it", why)}
	case d.Outcome == policy.Cancelled:
		return &Error{Code: ApprovalCancelled, Message: "refused: the question was withdrawn" + why}
	default:
		return &Error{Code: ApprovalUnavailable, Message: "refused: the call needs an approval, and nobody could give it" + why}
	}
}
