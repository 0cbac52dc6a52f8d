package local

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// maxJobs run at one time in a session.
const maxJobs = 10

// JobState says what is known of a job.
type JobState string

// The states of a job.
const (
	JobRunning JobState = "running"
	JobEnded   JobState = "ended"
	// JobLost is a job of an earlier process of this session that ended without
	// ending it. Nobody saw its end; it may still run.
	JobLost JobState = "lost"
)

// JobStatus is what is known of one background job.
type JobStatus struct {
	JobID       string   `json:"job_id"`
	Command     string   `json:"command"`
	Description string   `json:"description,omitempty"`
	State       JobState `json:"state"`
	ExitCode    *int     `json:"exit_code"`
	Signal      *string  `json:"signal"`
	DurationMS  int64    `json:"duration_ms"`
	// Reason of a job_kill, or of the session's end.
	Reason string `json:"reason,omitempty"`
}

// jobs are the background jobs of one session.
type jobs struct {
	set     *Set
	session *tools.Session // nil: there is no session, and there are no jobs

	mu     sync.Mutex
	last   int // number of the last job
	order  []*job
	closed bool
}

// job is a command in the background.
type job struct {
	id      string
	status  JobStatus // as it was at the start
	running *running  // nil for a job of an earlier process
	logged  chan struct{}
	closed  bool // its end is in the log of an earlier process

	reading  sync.Mutex // held while a portion of its output is taken
	mu       sync.Mutex
	reported bool // somebody knows its end
	reason   string
}

func (s *Set) newJobs(owner *tools.Session) *jobs { return &jobs{set: s, session: owner} }

// jobStart and jobEnd are the data of job/start and job/end.
type jobStart struct {
	CallID string `json:"call_id"`
	JobStatus
}

type jobEnd struct {
	JobStatus
	Leftovers   int                `json:"leftovers,omitempty"`
	Confinement policy.Confinement `json:"confinement"`
}

// apply rebuilds the list from the log of an earlier process, whose jobs ended
// with it.
func (js *jobs) apply(e session.Event) {
	var status JobStatus
	if json.Unmarshal(e.Data, &status) != nil {
		return
	}
	if e.Type == session.JobStart {
		if n, err := strconv.Atoi(strings.TrimPrefix(status.JobID, jobPrefix)); err == nil {
			js.last = max(js.last, n)
		}
		status.State = JobLost
		js.order = append(js.order, &job{id: status.JobID, status: status})
		return
	}
	if j := js.find(status.JobID); j != nil {
		j.status, j.closed = status, true
	}
}

// closeLost writes the end of the jobs whose end nobody saw, and returns them.
func (js *jobs) closeLost() (lost []JobStatus, err error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.order {
		if j.running != nil || j.closed {
			continue
		}
		j.status.Reason = "the process that ran it ended without ending it; it may still run"
		if _, err := js.session.Log().Append(session.JobEnd, j.status); err != nil {
			return lost, err
		}
		j.closed = true
		lost = append(lost, j.status)
	}
	return lost, nil
}

// find returns the job of that id, or nil.
func (js *jobs) find(id string) *job {
	for _, j := range js.order {
		if j.id == id {
			return j
		}
	}
	return nil
}

const jobPrefix = "bash-"

// room refuses when as many jobs run as may.
func (js *jobs) room() error {
	js.mu.Lock()
	defer js.mu.Unlock()
	return js.roomLocked()
}

func (js *jobs) roomLocked() error {
	if js.session == nil {
		return fail(tools.ToolFailed, "a background job needs a session, and this call has none")
	}
	if js.closed {
		return fail(tools.ToolFailed, "the session is ending; it starts no more jobs")
	}
	var names []string
	for _, j := range js.order {
		if j.isRunning() {
			names = append(names, j.id)
		}
	}
	if len(names) >= maxJobs {
		return fail(JobsFull, "%d jobs are running, and no more may: %s. Wait for one with job_output, or end one with job_kill", len(names), strings.Join(names, ", "))
	}
	return nil
}

// add makes a job of a running command. On an error it is none.
func (js *jobs) add(call *tools.Call, r *running, in shellArgs) (*job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if err := js.roomLocked(); err != nil {
		return nil, err
	}
	j := &job{id: jobPrefix + strconv.Itoa(js.last+1), running: r, logged: make(chan struct{})}
	j.status = JobStatus{JobID: j.id, Command: in.Command, Description: in.Description, State: JobRunning}
	if _, err := js.session.Log().Append(session.JobStart, jobStart{CallID: call.ID, JobStatus: j.status}); err != nil {
		return nil, fail(tools.LogFailed, "the job could not be logged, so it does not go on: %v", err)
	}
	js.last++
	js.order = append(js.order, j)
	go js.watch(j)
	return j, nil
}

// watch logs and tells the end of a job.
func (js *jobs) watch(j *job) {
	<-j.running.ended
	status := j.now()
	if _, err := js.session.Log().Append(session.JobEnd, jobEnd{
		JobStatus: status, Leftovers: j.running.end.leftovers, Confinement: j.running.end.confinement,
	}); err != nil {
		status.Reason = strings.TrimPrefix(status.Reason+"; its end could not be logged: "+err.Error(), "; ")
	}
	tell := !j.report("")
	close(j.logged)
	if tell && js.set.options.JobEnded != nil {
		js.set.options.JobEnded(js.session, status)
	}
}

// report notes that somebody knows, or will know, the job's end, and whether
// somebody did already.
func (j *job) report(reason string) (before bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before, j.reported = j.reported, true
	if reason != "" {
		j.reason = reason
	}
	return before
}

func (j *job) isRunning() bool {
	if j.running == nil {
		return false
	}
	select {
	case <-j.running.ended:
		return false
	default:
		return true
	}
}

// now is what is known of the job at this moment.
func (j *job) now() JobStatus {
	status := j.status
	j.mu.Lock()
	if j.reason != "" {
		status.Reason = j.reason
	}
	j.mu.Unlock()
	if j.running == nil {
		return status
	}
	status.DurationMS = time.Since(j.running.started).Milliseconds()
	if j.isRunning() {
		return status
	}
	end := j.running.end
	status.State, status.ExitCode, status.DurationMS = JobEnded, end.exitCode, end.duration.Milliseconds()
	if end.signal != "" {
		status.Signal = &end.signal
	}
	return status
}

// get returns the job of that id.
func (js *jobs) get(id string) (*job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if j := js.find(id); j != nil {
		return j, nil
	}
	var names []string
	for _, j := range js.order {
		names = append(names, j.id)
	}
	if names == nil {
		return nil, fail(UnknownJob, "there is no job %q: this session has started none", id)
	}
	return nil, fail(UnknownJob, "there is no job %q; there are %s", id, strings.Join(names, ", "))
}

// list returns all jobs, the oldest first.
func (js *jobs) list() []JobStatus {
	js.mu.Lock()
	defer js.mu.Unlock()
	all := []JobStatus{}
	for _, j := range js.order {
		all = append(all, j.now())
	}
	return all
}

// kill ends the job and returns when it has ended and that is logged.
func (j *job) kill(reason string) {
	if j.running == nil {
		return
	}
	if j.isRunning() {
		j.report(reason)
	}
	j.running.kill(killGrace)
	<-j.logged
}

// end ends all jobs and returns those that were running.
func (js *jobs) end() (ended []JobStatus) {
	js.mu.Lock()
	js.closed = true
	order := js.order
	js.mu.Unlock()
	var wait sync.WaitGroup
	for _, j := range order {
		if j.isRunning() {
			ended = append(ended, j.now())
		}
		wait.Go(func() { j.kill("the session ended") })
	}
	wait.Wait()
	return ended
}

// line is a job on one line of a model's text.
func (s JobStatus) line() string {
	how := string(s.State)
	switch {
	case s.State == JobLost:
		how = "lost: the process that ran it is gone; it may still run"
	case s.Signal != nil:
		how = "killed by signal " + *s.Signal
	case s.ExitCode != nil:
		how = fmt.Sprintf("ended with exit code %d", *s.ExitCode)
	}
	return fmt.Sprintf("%s: %s, %d ms: %s", s.JobID, how, s.DurationMS, oneLine(s.Command))
}

// oneLine is the first line of a command, shortened.
func oneLine(command string) string {
	const longest = 200
	line, _, more := strings.Cut(strings.TrimSpace(screenText(command)), "\n")
	if len(line) > longest {
		line, more = line[:cutBefore(line, longest)], true
	}
	if more {
		line += " …"
	}
	return line
}
