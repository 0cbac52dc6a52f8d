package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"strings"
	"time"

	"github.com/dsh-run/dsh"
	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools/local"
	"github.com/spf13/cobra"
)

// sessionFlags are the flags of every command that opens a session.
type sessionFlags struct {
	cwd, sandbox, preset, approve, isolation, log string
	requireFull, yes, json, quiet                 bool
	timeout, compute                              time.Duration
	maxCalls                                      int
	maxOutput, memory                             size
	tools                                         []string
}

func (f *sessionFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.cwd, "cwd", ".", "the workspace `DIR`")
	flags.StringVar(&f.sandbox, "sandbox", policy.ReadOnly.String(), "which files may be changed: read-only, workspace-write or danger-full-access")
	flags.StringVar(&f.preset, "preset", "", "sandbox mode and approval together, by `NAME`: "+presetNames())
	flags.BoolVar(&f.requireFull, "require-full", false, "refuse what the sandbox can enforce only partially")
	flags.StringVar(&f.approve, "approve", "", "ask or never (default: ask where there is a terminal)")
	flags.DurationVar(&f.timeout, "timeout", 0, "end after this time, for example 30s")
	flags.StringSliceVar(&f.tools, "tools", nil, "only these tools, comma-separated")
	flags.StringVar(&f.log, "log", "", "the session's log, a new `FILE`, or none (default: a new file in the user's state directory)")
	flags.BoolVar(&f.yes, "yes", false, "accept danger-full-access where there is no terminal to ask on")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	flags.BoolVar(&f.quiet, "quiet", false, "no progress and no remarks on stderr")
}

// registerProgram adds the flags that only programs have.
func (f *sessionFlags) registerProgram(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.isolation, "isolation", "process", "process: a confined child; in-process: no boundary, for programs you trust")
	flags.DurationVar(&f.compute, "compute", 0, "limit of the program's own computing time (default 1m0s)")
	flags.IntVar(&f.maxCalls, "max-calls", 0, "limit of calls (default 10000)")
	flags.Var(&f.maxOutput, "max-output", "limit of what it prints and returns (default 64M)")
	flags.Var(&f.memory, "memory", "limit of the program's memory (default 512M)")
}

func presetNames() string {
	var names []string
	for _, p := range policy.Presets() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// options turns the flags into those of a session.
func (f *sessionFlags) options(cmd *cobra.Command) (*dsh.Options, error) {
	o := &dsh.Options{
		Dir: f.cwd, Tools: f.tools, By: "command",
		Local:  &local.Options{OneShot: true, RequireFull: f.requireFull},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Limits: runtime.Limits{Compute: f.compute, Wall: f.timeout, Calls: f.maxCalls, Memory: int64(f.memory)},
	}
	if f.maxOutput > 0 {
		o.Limits.OutputBytes = int(min(f.maxOutput, math.MaxInt))
	}
	if f.timeout < 0 || f.compute < 0 || f.maxCalls < 0 {
		return nil, flagsf("a limit is negative")
	}
	if err := f.permissions(cmd, o); err != nil {
		return nil, err
	}
	switch f.isolation {
	case "", "process":
	case "in-process":
		o.Engine = runtime.NewInProcess()
	default:
		return nil, flagsf("--isolation %q: want process or in-process", f.isolation)
	}
	if o.Temporary = f.log == "none"; !o.Temporary {
		o.Log = f.log
	}
	return o, nil
}

// permissions reads both knobs and the answerer.
func (f *sessionFlags) permissions(cmd *cobra.Command, o *dsh.Options) error {
	if err := f.knobs(cmd, o); err != nil {
		return flagsf("%w", err)
	}
	if o.Approval == policy.Ask {
		o.Answerers = []policy.Answerer{terminalAnswerer()}
	}
	if o.Mode == policy.DangerFullAccess {
		return f.acceptDanger()
	}
	return nil
}

func (f *sessionFlags) knobs(cmd *cobra.Command, o *dsh.Options) (err error) {
	if haveTerminal() {
		o.Approval = policy.Ask
	}
	if f.preset != "" {
		if cmd.Flags().Changed("sandbox") {
			return errors.New("--sandbox and --preset exclude each other")
		}
		p, err := policy.ParsePreset(f.preset)
		if err != nil {
			return err
		}
		o.Mode, o.Approval = p.Mode, min(p.Approval, o.Approval)
	} else if o.Mode, err = policy.ParseMode(f.sandbox); err != nil {
		return err
	}
	if f.approve != "" {
		o.Approval, err = policy.ParseApproval(f.approve)
	}
	return err
}

func (f *sessionFlags) acceptDanger() error {
	if !f.yes && !haveTerminal() {
		return usagef("danger-full-access confines nothing; without a terminal it needs --yes")
	}
	fmt.Fprintln(os.Stderr, "dsh-run: warning: danger-full-access: nothing is confined, commands can change every file that you can")
	return nil
}

// open opens the session that the flags describe. What cannot be opened is a
// usage error: nothing has run.
func (f *sessionFlags) open(cmd *cobra.Command) (*dsh.Session, error) {
	o, err := f.options(cmd)
	if err != nil {
		return nil, err
	}
	s, err := dsh.Open(context.WithoutCancel(cmd.Context()), o)
	if place := (*session.PlaceError)(nil); errors.As(err, &place) {
		return nil, usagef("%w; name one with --log FILE, or keep none with --log none", err)
	}
	if err != nil {
		return nil, &usageError{err: err}
	}
	return s, nil
}

// finish closes the session and says what it ended.
func (f *sessionFlags) finish(s *dsh.Session) {
	for _, job := range s.EndJobs() {
		f.remark("ended the background job %s, which was still running", job.JobID)
	}
	if err := s.Close(); err != nil {
		f.remark("closing the session: %v", err)
	}
}

func (f *sessionFlags) remark(format string, args ...any) {
	if !f.quiet {
		fmt.Fprintf(os.Stderr, "dsh-run: "+format+"\n", args...)
	}
}
