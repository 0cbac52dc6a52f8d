package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dsh-run/dsh"
	"github.com/dsh-run/dsh/ptc"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/sandbox"
	"github.com/dsh-run/dsh/tools"
)

// programs compares the engines with a program that does nothing.
func programs(context.Context, string) (group, error) {
	warm, err := runtime.NewProcess(&runtime.ProcessOptions{Start: startWorker})
	if err != nil {
		return group{}, err
	}
	cold, err := runtime.NewProcess(&runtime.ProcessOptions{Start: startWorker, Spares: -1})
	if err != nil {
		return group{}, err
	}
	return group{
		name: "run of a trivial program",
		rows: []row{
			{"in process", trivial(runtime.NewInProcess(), 0)},
			{"confined child, idle one ready", trivial(warm, 30*time.Millisecond)},
			{"confined child, started for it", trivial(cold, 0)},
		},
		close: func() { warm.Close(); cold.Close() },
	}, nil
}

func startWorker(cmd *exec.Cmd, exe string) (runtime.Confinement, error) {
	_, err := sandbox.StartSealed(cmd, exe)
	return runtime.Confinement{}, err
}

// trivial measures one run, after a pause in which a spare gets ready.
func trivial(engine runtime.Engine, pause time.Duration) func(context.Context) (time.Duration, error) {
	host := runtime.Host{Start: func(_ context.Context, _ runtime.Call, reply func(runtime.Reply)) { reply(runtime.Reply{}) }}
	return func(ctx context.Context) (time.Duration, error) {
		time.Sleep(pause)
		begun := time.Now()
		outcome, err := engine.Run(ctx, runtime.Program{Source: "return 1"}, host)
		if err == nil && outcome.Failure != nil {
			err = outcome.Failure
		}
		return time.Since(begun), err
	}
}

// callsPerRun is how many sub-calls one measured program makes.
const callsPerRun = 500

// calls measures one sub-call through the whole pipeline: a tool that does
// nothing, the log on, awaited one after another and all at once.
func calls(ctx context.Context, base string) (group, error) {
	in, err := openSession(ctx, filepath.Join(base, "in-process.jsonl"), runtime.NewInProcess())
	if err != nil {
		return group{}, err
	}
	child, err := openSession(ctx, filepath.Join(base, "child.jsonl"), nil)
	if err != nil {
		return group{}, err
	}
	const sequential, parallel = "for (let i = 0; i < N; i++) await tools.nothing({});", "await Promise.all(Array.from({ length: N }, () => tools.nothing({})));"
	return group{
		name: "one sub-call of a tool that does nothing, whole pipeline, logged", share: 0.1,
		rows: []row{
			{"in process, one after another", perCall(in, sequential)},
			{"in process, all at once", perCall(in, parallel)},
			{"confined child, one after another", perCall(child, sequential)},
			{"confined child, all at once", perCall(child, parallel)},
		},
		close: func() { in.Close(); child.Close() },
	}, nil
}

func openSession(ctx context.Context, log string, engine runtime.Engine) (*dsh.Session, error) {
	s, err := dsh.Open(ctx, &dsh.Options{Log: log, Engine: engine})
	if err != nil {
		return nil, err
	}
	tools.Add(s.Registry, tools.Tool{
		Name: "nothing", Description: "Does nothing.", Effect: tools.NoEffect,
		Overlaps: func(json.RawMessage) bool { return true },
	}, func(context.Context, *tools.Call, struct{}) (int, error) { return 1, nil })
	return s, nil
}

// perCall measures between the first and the last sub-call of a run, so that
// the start of the program does not count.
func perCall(s *dsh.Session, program string) func(context.Context) (time.Duration, error) {
	source := strings.ReplaceAll(program, "N", fmt.Sprint(callsPerRun))
	return func(ctx context.Context) (time.Duration, error) {
		var first, last time.Time
		report, err := s.Run(ctx, source, &ptc.Run{OnCall: func(_, _ string, ended *ptc.SubCall) {
			if last = time.Now(); first.IsZero() {
				first = last
			}
		}})
		if err == nil && report.Failure != nil {
			err = report.Failure
		}
		return last.Sub(first) / callsPerRun, err
	}
}
