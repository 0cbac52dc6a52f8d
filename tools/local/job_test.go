package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

// background starts a job and returns its id.
func (b *bench) background(command string) string {
	b.t.Helper()
	return b.ok("bash", object{"command": command, "run_in_background": true})["job_id"].(string)
}

func TestAJobIsReadInPortions(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	temp := b.session.Log().TempDir()
	begun := b.ok("bash", object{"run_in_background": true,
		"command": "echo one; echo err >&2; while ! test -e $TMPDIR/go; do sleep 0.01; done; echo two; exit 5"})
	id := begun["job_id"].(string)
	if id != "bash-1" {
		t.Errorf("the job is called %s", id)
	}
	// What it has written already is the first portion.
	out, stderr := stream(begun, "stdout"), stream(begun, "stderr")
	waitFor(t, func() bool {
		if out == "one\n" && stderr == "err\n" {
			return true
		}
		v := b.ok("job_output", object{"job_id": id})
		out, stderr = out+stream(v, "stdout"), stderr+stream(v, "stderr")
		return v["state"] != "running"
	})
	if again := b.ok("job_output", object{"job_id": id}); stream(again, "stdout") != "" {
		t.Errorf("a portion came twice: %v", again)
	}
	if err := os.WriteFile(filepath.Join(temp, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := b.call("job_output", object{"job_id": id, "wait": true})
	last := b.value(r)
	if last["state"] != "ended" || stream(last, "stdout") != "two\n" || last["exit_code"] != 5.0 {
		t.Errorf("the last portion is %v", last)
	}
	if lines := strings.Split(text(r), "\n"); len(lines) != 3 || lines[1] != "[exit code: 5]" || !strings.Contains(lines[2], "bash-1: ended with exit code 5") {
		t.Errorf("a model sees %q; %s", lines, r.Value)
	}
}

func TestWaitingForAJobLeavesItAlive(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	id := b.background("sleep 1000")
	if v := b.ok("job_output", object{"job_id": id, "wait": true, "timeout_ms": 50}); v["state"] != "running" {
		t.Errorf("after the wait the job is %v", v)
	}
	v := b.ok("job_kill", object{"job_id": id, "reason": "enough"})
	if v["state"] != "ended" || v["signal"] != "SIGTERM" || v["reason"] != "enough" {
		t.Errorf("after the kill the job is %v", v)
	}
	if v := b.ok("job_kill", object{"job_id": id}); v["reason"] != "enough" {
		t.Errorf("killing again gave %v", v)
	}
	if list := b.ok("job_list", object{})["jobs"].([]any); len(list) != 1 {
		t.Errorf("the list is %v", list)
	}
	ends := b.events(session.JobEnd)
	if len(ends) != 1 || !strings.Contains(string(ends[0]), `"reason":"enough"`) {
		t.Errorf("logged %s", ends)
	}
}

func TestNoMoreJobsThanTen(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	for range 10 {
		b.background("sleep 1000")
	}
	b.fails(local.JobsFull, "bash", object{"command": "echo x > $TMPDIR/ran", "run_in_background": true}, "bash-1, bash-2", "bash-10")
	if _, err := os.Stat(filepath.Join(b.session.Log().TempDir(), "ran")); err == nil {
		t.Error("the command ran although it could be no job")
	}
	r := b.call("bash", object{"command": "sleep 1000", "timeout_ms": 100})
	if got := text(r); !strings.Contains(got, "it could not go on as a job") || !strings.Contains(got, "[timed out after 100 ms; it was killed]") {
		t.Errorf("with a full table a timeout gave %q", got)
	}
	ended := b.set.End(b.session)
	if len(ended) != 10 {
		t.Errorf("the end of the session ended %d jobs", len(ended))
	}
	if ends := b.events(session.JobEnd); len(ends) != 10 {
		t.Errorf("%d ends were logged", len(ends))
	}
}

func TestJobsOfAnEarlierProcessAreLost(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	if _, err := b.session.Log().Append(session.JobStart, object{"job_id": "bash-7", "command": "make", "state": "running", "exit_code": nil, "signal": nil}); err != nil {
		t.Fatal(err)
	}
	v := b.ok("job_output", object{"job_id": "bash-7"})
	if v["state"] != "lost" {
		t.Errorf("the job is %v", v)
	}
	if id := b.background("true"); id != "bash-8" {
		t.Errorf("the next job is %s", id)
	}
	b.fails(local.UnknownJob, "job_output", object{"job_id": "bash-1"}, "bash-7, bash-8")
}

func TestAJobNeedsASession(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	r := b.Call(t.Context(), tools.Request{Tool: "bash", Args: []byte(`{"command":"true","run_in_background":true}`)})
	if r.Error == nil || !strings.Contains(r.Error.Message, "session") {
		t.Errorf("it ended with %+v", r.Error)
	}
}

func TestTheEndOfAJobIsToldOnce(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	told := make(chan local.JobStatus, 10)
	set := local.New(&local.Options{JobEnded: func(_ *tools.Session, job local.JobStatus) { told <- job }})
	defer set.Close()
	b.Registry = tools.NewRegistry(nil)
	for _, tool := range set.Tools() {
		b.Add(tool)
	}
	b.background("exit 4")
	if job := <-told; job.JobID != "bash-1" || job.ExitCode == nil || *job.ExitCode != 4 {
		t.Errorf("told of %+v", job)
	}
	id := b.background("sleep 1000")
	b.ok("job_kill", object{"job_id": id})
	set.Close()
	select {
	case job := <-told:
		t.Errorf("told of %s, whose killer knows", fmt.Sprint(job))
	default:
	}
}

func TestResumingWritesTheEndOfLostJobsOnce(t *testing.T) {
	b := shellBench(t, policy.ReadOnly)
	for _, id := range []string{"bash-7", "bash-8"} {
		if _, err := b.session.Log().Append(session.JobStart, object{"job_id": id, "command": "make", "state": "running", "exit_code": nil, "signal": nil}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.session.Log().Append(session.JobEnd, object{"job_id": "bash-8", "command": "make", "state": "ended", "exit_code": 0, "signal": nil}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		lost, err := b.set.Resume(b.session)
		if err != nil || len(lost) != want {
			t.Fatalf("resuming closed %+v, %v; want %d", lost, err, want)
		}
	}
	ends := b.events(session.JobEnd)
	if len(ends) != 2 || !strings.Contains(string(ends[1]), `"bash-7"`) || !strings.Contains(string(ends[1]), `"lost"`) {
		t.Errorf("the ends are %s", ends)
	}
}
