package local

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
)

//go:embed bash.md
var shellDescription string

// shellArgs are what a model gives the shell's tool.
type shellArgs struct {
	Command         string `json:"command" jsonschema:"what the shell runs, as it is"`
	Description     string `json:"description,omitempty" jsonschema:"a few words for the user: what the command does"`
	TimeoutMS       *int64 `json:"timeout_ms,omitempty" jsonschema:"limit in milliseconds: 120000 by default, at most 600000"`
	Workdir         string `json:"workdir,omitempty" jsonschema:"the directory to run in; a relative path starts at the working directory"`
	RunInBackground bool   `json:"run_in_background,omitempty" jsonschema:"start a job and return at once"`
	OnTimeout       string `json:"on_timeout,omitempty" jsonschema:"kill, or job: let the command go on as a job"`
	widening
}

// shellValue is what a program gets of a command.
type shellValue struct {
	ExitCode   *int             `json:"exit_code"`
	Signal     *string          `json:"signal"`
	TimedOut   bool             `json:"timed_out"`
	JobID      *string          `json:"job_id,omitempty"`
	DurationMS int64            `json:"duration_ms"`
	Stdout     outputValue      `json:"stdout"`
	Stderr     outputValue      `json:"stderr"`
	Sandbox    confinementValue `json:"sandbox"`
	// Withheld are names of variables that the command did not get.
	Withheld []string `json:"withheld_environment,omitempty"`
	// Markers are the lines that a model sees below the output.
	Markers []string `json:"markers,omitempty"`
}

const (
	defaultTimeout = 120 * time.Second
	maxTimeout     = 600 * time.Second
)

// What becomes of a command that reaches its timeout.
const (
	onTimeoutKill = "kill"
	onTimeoutJob  = "job"
)

func (s *Set) shellTool() tools.Tool {
	name := systemShell().name
	return tools.New(tools.Tool{
		Name: name, Description: strings.ReplaceAll(shellDescription, "$SHELL", name),
		Effect: tools.Local, Confined: true, Widen: widen,
		Render: tools.Renderer(func(_ shellArgs, v shellValue) []tools.Content {
			return []tools.Content{tools.Text(s.shellText(v))}
		}),
	}, s.shell)
}

func (s *Set) shell(ctx context.Context, call *tools.Call, in shellArgs) (v shellValue, err error) {
	state, err := s.of(call.Session)
	if err != nil {
		return v, err
	}
	terms, err := s.termsOf(call, in)
	if err != nil {
		return v, err
	}
	if in.RunInBackground {
		if err := state.jobs.room(); err != nil {
			return v, err
		}
	}
	r, err := s.start(ctx, call, in.Command, terms.dir)
	if err != nil {
		return v, err
	}
	if in.RunInBackground {
		return s.background(call, state.jobs, r, in, terms)
	}
	return s.foreground(ctx, call, state.jobs, r, in, terms)
}

// terms is what the arguments ask for, defaults filled in.
type terms struct {
	dir       string
	timeout   time.Duration
	onTimeout string
	notes     []string
}

func (s *Set) termsOf(call *tools.Call, in shellArgs) (p terms, err error) {
	if strings.ContainsRune(in.Command, 0) {
		return p, fail(tools.InvalidArgs, "command has a NUL byte, which no shell can be given")
	}
	if p.dir, err = s.workdir(call, in.Workdir); err != nil {
		return p, err
	}
	if p.timeout, p.notes, err = timeoutOf(in.TimeoutMS, defaultTimeout); err != nil {
		return p, err
	}
	switch p.onTimeout = in.OnTimeout; p.onTimeout {
	case onTimeoutKill, onTimeoutJob:
	case "":
		p.onTimeout = onTimeoutJob
		if s.options.OneShot || call.Caller.Kind == policy.Program || call.Session == nil {
			p.onTimeout = onTimeoutKill
		}
	default:
		return p, fail(tools.InvalidArgs, "on_timeout is %q, want %q or %q", in.OnTimeout, onTimeoutKill, onTimeoutJob)
	}
	return p, nil
}

// timeoutOf reads a timeout; one that is too long is clamped, with a note.
func timeoutOf(ms *int64, fallback time.Duration) (time.Duration, []string, error) {
	switch {
	case ms == nil:
		return fallback, nil, nil
	case *ms <= 0:
		return 0, nil, fail(tools.InvalidArgs, "timeout_ms is %d, want more than 0", *ms)
	case *ms > maxTimeout.Milliseconds():
		return maxTimeout, []string{fmt.Sprintf("[timeout_ms was %d; the longest is %d, which was used]", *ms, maxTimeout.Milliseconds())}, nil
	}
	return time.Duration(*ms) * time.Millisecond, nil, nil
}

// foreground waits for the command's end, its timeout, or the caller's.
func (s *Set) foreground(ctx context.Context, call *tools.Call, jobs *jobs, r *running, in shellArgs, p terms) (shellValue, error) {
	timer := time.NewTimer(p.timeout)
	defer timer.Stop()
	select {
	case <-r.ended:
		return s.ended(call, r, p, false)
	case <-ctx.Done():
		r.kill(killGrace)
		<-r.ended
		return shellValue{}, context.Cause(ctx)
	case <-timer.C:
	}
	if p.onTimeout == onTimeoutJob {
		j, err := jobs.add(call, r, in)
		if err == nil {
			v := s.handedOver(call, r, j.id, p)
			v.TimedOut = true
			v.Markers = append(v.Markers, fmt.Sprintf("[timed out after %d ms; it goes on as the job %s: see job_output, job_kill]", p.timeout.Milliseconds(), j.id))
			return v, nil
		}
		p.notes = append(p.notes, "[it could not go on as a job: "+failureText(err)+"]")
	}
	r.kill(killGrace)
	<-r.ended
	return s.ended(call, r, p, true)
}

func (s *Set) background(call *tools.Call, jobs *jobs, r *running, in shellArgs, p terms) (shellValue, error) {
	j, err := jobs.add(call, r, in)
	if err != nil {
		r.kill(0)
		<-r.ended
		return shellValue{}, err
	}
	v := s.handedOver(call, r, j.id, p)
	v.Markers = append(v.Markers, fmt.Sprintf("[started as the job %s: see job_output, job_kill]", j.id))
	return v, nil
}

// ended is the value of a command that has ended.
func (s *Set) ended(call *tools.Call, r *running, p terms, timedOut bool) (shellValue, error) {
	call.Confine(r.end.confinement)
	if r.end.broken != nil {
		return shellValue{}, startFailure(r.end.broken)
	}
	v := s.newValue(call, r, true)
	v.ExitCode, v.DurationMS, v.TimedOut = r.end.exitCode, r.end.duration.Milliseconds(), timedOut
	if r.end.signal != "" {
		v.Signal = &r.end.signal
	}
	v.Sandbox = newConfinementValue(r.end.confinement)
	v.Markers = append(v.Markers, p.notes...)
	v.Markers = append(v.Markers, endMarkers(r.end, call.Approval)...)
	if timedOut {
		v.Markers = insertTimeout(v.Markers, r.end, fmt.Sprintf("[timed out after %d ms; it was killed]", p.timeout.Milliseconds()))
	}
	return v, nil
}

// handedOver is the value of a command that goes on as a job.
func (s *Set) handedOver(call *tools.Call, r *running, id string, p terms) shellValue {
	v := s.newValue(call, r, false)
	v.JobID, v.DurationMS = &id, time.Since(r.started).Milliseconds()
	v.Sandbox = newConfinementValue(r.by)
	v.Markers = p.notes
	return v
}

// newValue takes what was written so far.
func (s *Set) newValue(call *tools.Call, r *running, ended bool) (v shellValue) {
	if !ended || call.Caller.Kind != policy.Program {
		s.saveLong(r, ended)
	}
	v.Stdout, v.Stderr = newOutputValue(r.out.take(ended)), newOutputValue(r.err.take(ended))
	fit(&v.Stdout, &v.Stderr, valueRoom)
	v.Stdout.saved(&r.out)
	v.Stderr.saved(&r.err)
	v.Withheld = r.withheld
	return v
}

// saveLong saves the streams of which a model would see only the end, and all
// that go on.
func (s *Set) saveLong(r *running, ended bool) {
	room := int64(s.textBudget() - footerRoom)
	out, err := r.out.size(), r.err.size()
	for stream, size := range map[*output]int64{&r.out: out, &r.err: err} {
		if !ended || size > tailLimit || out+err > room && size > room/2 {
			stream.save()
		}
	}
}

// saved notes the file that has the whole stream.
func (v *outputValue) saved(o *output) {
	if path, _ := o.saved(); path != "" {
		v.SpillPath = &path
	}
}

// footerRoom is more than the markers of a command usually take, in bytes.
const footerRoom = 2048

func (s *Set) textBudget() int {
	if s.options.MaxInlineTokens > 0 {
		return s.options.MaxInlineTokens * bytesPerToken
	}
	return defaultInlineTokens * bytesPerToken
}

// shellText is what a model sees of a command.
func (s *Set) shellText(v shellValue) string {
	text, _, _ := transcript{stdout: v.Stdout, stderr: v.Stderr, footer: v.Markers}.text(s.textBudget())
	if text == "" {
		return "[no output]"
	}
	return text
}
