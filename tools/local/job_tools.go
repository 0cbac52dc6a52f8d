package local

import (
	"context"
	_ "embed"
	"strings"
	"time"

	"github.com/dsh-run/dsh/tools"
)

//go:embed job_output.md
var jobOutputDescription string

//go:embed job_list.md
var jobListDescription string

//go:embed job_kill.md
var jobKillDescription string

// shellTools are the shell and its jobs.
func (s *Set) shellTools() []tools.Tool {
	return []tools.Tool{s.shellTool(), s.jobOutputTool(), s.jobListTool(), s.jobKillTool()}
}

type jobOutputArgs struct {
	JobID     string `json:"job_id" jsonschema:"the job, for example bash-1"`
	Wait      bool   `json:"wait,omitempty" jsonschema:"wait for the job's end"`
	TimeoutMS *int64 `json:"timeout_ms,omitempty" jsonschema:"how long to wait, in milliseconds: 30000 by default, at most 600000"`
}

type jobOutputValue struct {
	JobStatus
	Stdout  outputValue      `json:"stdout"`
	Stderr  outputValue      `json:"stderr"`
	Sandbox confinementValue `json:"sandbox"`
	Markers []string         `json:"markers"`
}

const defaultJobWait = 30 * time.Second

func (s *Set) jobOutputTool() tools.Tool {
	return tools.New(tools.Tool{
		Name: "job_output", Description: jobOutputDescription, Effect: tools.NoEffect, Overlaps: always,
		Render: tools.Renderer(func(_ jobOutputArgs, v jobOutputValue) []tools.Content {
			text, _, _ := transcript{stdout: v.Stdout, stderr: v.Stderr, footer: v.Markers}.text(s.textBudget())
			return []tools.Content{tools.Text(text)}
		}),
	}, s.jobOutput)
}

func (s *Set) jobOutput(ctx context.Context, call *tools.Call, in jobOutputArgs) (v jobOutputValue, err error) {
	wait, notes, err := timeoutOf(in.TimeoutMS, defaultJobWait)
	if err != nil {
		return v, err
	}
	j, err := s.job(call, in.JobID)
	if err != nil {
		return v, err
	}
	if in.Wait {
		if err := j.await(ctx, wait); err != nil {
			return v, err
		}
	}
	return s.readJob(call, j, notes), nil
}

func (s *Set) job(call *tools.Call, id string) (*job, error) {
	state, err := s.of(call.Session)
	if err != nil {
		return nil, err
	}
	return state.jobs.get(id)
}

// await returns when the job has ended, or after a while.
func (j *job) await(ctx context.Context, atMost time.Duration) error {
	if j.running == nil {
		return nil
	}
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-j.running.ended:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// readJob takes what the job wrote since it was read last.
func (s *Set) readJob(call *tools.Call, j *job, notes []string) jobOutputValue {
	v := jobOutputValue{JobStatus: j.now(), Markers: notes}
	if j.running == nil {
		v.Markers = append(v.Markers, "["+v.line()+"]")
		return v
	}
	j.reading.Lock()
	defer j.reading.Unlock()
	ended := v.State == JobEnded
	read := s.newValue(call, j.running, ended)
	v.Stdout, v.Stderr, v.Sandbox = read.Stdout, read.Stderr, newConfinementValue(j.running.by)
	if ended {
		j.report("")
		v.Sandbox = newConfinementValue(j.running.end.confinement)
		v.Markers = append(v.Markers, endMarkers(j.running.end, call.Approval)...)
	}
	v.Markers = append(v.Markers, "["+v.line()+"]")
	return v
}

type jobListValue struct {
	Jobs []JobStatus `json:"jobs"`
}

func (s *Set) jobListTool() tools.Tool {
	return tools.New(tools.Tool{
		Name: "job_list", Description: jobListDescription, Effect: tools.NoEffect, Overlaps: always,
		Render: tools.Renderer(func(_ struct{}, v jobListValue) []tools.Content {
			if len(v.Jobs) == 0 {
				return []tools.Content{tools.Text("[this session has started no jobs]")}
			}
			var lines []string
			for _, j := range v.Jobs {
				lines = append(lines, j.line())
			}
			return []tools.Content{tools.Text(strings.Join(lines, "\n"))}
		}),
	}, func(_ context.Context, call *tools.Call, _ struct{}) (v jobListValue, err error) {
		state, err := s.of(call.Session)
		if err != nil {
			return v, err
		}
		return jobListValue{state.jobs.list()}, nil
	})
}

type jobKillArgs struct {
	JobID  string `json:"job_id" jsonschema:"the job, for example bash-1"`
	Reason string `json:"reason,omitempty" jsonschema:"a few words for the log"`
}

func (s *Set) jobKillTool() tools.Tool {
	return tools.New(tools.Tool{
		Name: "job_kill", Description: jobKillDescription, Effect: tools.Local,
		Render: tools.Renderer(func(_ jobKillArgs, v JobStatus) []tools.Content {
			return []tools.Content{tools.Text("[" + v.line() + "]")}
		}),
	}, func(_ context.Context, call *tools.Call, in jobKillArgs) (JobStatus, error) {
		j, err := s.job(call, in.JobID)
		if err != nil {
			return JobStatus{}, err
		}
		if !j.isRunning() {
			return j.now(), nil
		}
		reason := in.Reason
		if reason == "" {
			reason = "job_kill"
		}
		j.kill(reason)
		return j.now(), nil
	})
}
