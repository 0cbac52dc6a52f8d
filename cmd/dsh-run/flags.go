package main

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dsh-run/dsh"
	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/sandbox"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools/local"
	"github.com/spf13/cobra"
)

// sessionFlags are the flags of every command that opens a session.
type sessionFlags struct {
	cwd, sandbox, preset, isolation, log, resume string
	approve, approveVia                          string
	requireFull, yes, json, quiet                bool
	timeout, compute                             time.Duration
	maxCalls                                     int
	maxOutput, memory                            size
	tools, backends                              []string

	// What only configuration files say.
	runner        *sandbox.Runner
	requireDenial bool
	presets       *policy.PresetTable
	redact        []session.Pattern
	outOfReach    []string
}

// noLog is the value of --log that keeps no log.
const noLog = "none"

// The values of --isolation.
const (
	isolationProcess   = "process"
	isolationInProcess = "in-process"
)

func (f *sessionFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.cwd, "cwd", ".", "the workspace `DIR`")
	flags.StringVar(&f.sandbox, "sandbox", policy.ReadOnly.String(), "which files may be changed: read-only, workspace-write or danger-full-access")
	flags.StringVar(&f.preset, "preset", "", "sandbox mode and approval together, by `NAME`: "+presetNames())
	flags.StringSliceVar(&f.backends, "backends", nil, "only these backends may confine, in this order, comma-separated"+backendNames())
	flags.BoolVar(&f.requireFull, "require-full", false, "refuse what the sandbox can enforce only partially")
	flags.StringVar(&f.approve, "approve", "", "ask or never (default: ask where there is somebody to ask)")
	flags.StringVar(&f.approveVia, "approve-via", "", "ask through the files questions and answers in `DIR` instead of on the terminal")
	flags.Var((*timeLimit)(&f.timeout), "timeout", "end after this time, for example 30s")
	flags.StringSliceVar(&f.tools, "tools", nil, "only these tools, comma-separated")
	flags.StringVar(&f.log, "log", "", "the session's log, a new `FILE`, or none (default: a new file in the user's state directory)")
	flags.StringVar(&f.resume, "resume", "", "go on with the session of the log `FILE`, in its workspace and with its modes")
	flags.BoolVar(&f.yes, "yes", false, "accept danger-full-access where there is no terminal to ask on")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	flags.BoolVar(&f.quiet, "quiet", false, "no progress and no remarks on stderr")
}

// registerProgram adds the flags that only programs have.
func (f *sessionFlags) registerProgram(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.isolation, "isolation", isolationProcess, "process: a confined child; in-process: no boundary, for programs you trust")
	flags.Var((*timeLimit)(&f.compute), "compute", "limit of the program's own computing time (default 1m0s)")
	flags.Var((*countLimit)(&f.maxCalls), "max-calls", "limit of calls (default 10000)")
	flags.Var(&f.maxOutput, "max-output", "limit of what it prints and returns (default 64M)")
	flags.Var(&f.memory, "memory", "limit of the program's memory (default 512M)")
}

func backendNames() string {
	if names := sandbox.Backends(); len(names) > 0 {
		return " (default " + strings.Join(names, ",") + ")"
	}
	return ""
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
		Tools: f.tools, By: byCommand, Resume: f.resume, RequireDenial: f.requireDenial,
		Preset: f.preset, Presets: f.presets, Redact: f.redact, OutOfReach: f.outOfReach,
		Local: &local.Options{OneShot: true, RequireFull: f.requireFull,
			Chain: sandbox.Chain{Backends: f.backends, Runner: f.runner}},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Limits: runtime.Limits{Compute: f.compute, Wall: f.timeout, Calls: f.maxCalls, Memory: int64(f.memory)},
	}
	if err := o.Local.Chain.Check(); err != nil {
		return nil, flagsf("--backends: %w", err)
	}
	if f.maxOutput > 0 {
		o.Limits.OutputBytes = int(min(f.maxOutput, math.MaxInt))
	}
	switch f.isolation {
	case "", isolationProcess:
	case isolationInProcess:
		o.Engine = runtime.NewInProcess()
	default:
		return nil, flagsf("--isolation %q: want %s or %s", f.isolation, isolationProcess, isolationInProcess)
	}
	if err := f.place(cmd, o); err != nil {
		return nil, err
	}
	return o, f.permissions(cmd, o)
}

// place says where the session works and where its log is.
func (f *sessionFlags) place(cmd *cobra.Command, o *dsh.Options) error {
	if f.resume == "" {
		o.Dir = f.cwd
		if o.Temporary = f.log == noLog; !o.Temporary {
			o.Log = f.log
		}
		return nil
	}
	if f.log != "" {
		return flagsf("--log and --resume exclude each other: a session goes on in its own log")
	}
	if cmd.Flags().Changed("cwd") {
		o.Dir = f.cwd
	}
	return nil
}

// permissions reads both knobs and the answerer.
func (f *sessionFlags) permissions(cmd *cobra.Command, o *dsh.Options) error {
	if cmd.Flags().Changed("sandbox") && f.preset != "" {
		return flagsf("--sandbox and --preset exclude each other")
	}
	if err := f.answerer(o); err != nil {
		return flagsf("%w", err)
	}
	state, err := f.knobs(len(o.Answerers) > 0)
	if err != nil {
		return flagsf("%w", err)
	}
	if f.resume == "" {
		o.Mode, o.Approval = state.Mode, state.Approval
	}
	return nil
}

// answerer chooses who is asked.
func (f *sessionFlags) answerer(o *dsh.Options) error {
	if f.approveVia == "" {
		if haveTerminal() {
			o.Answerers = []policy.Answerer{terminalAnswerer()}
		}
		return nil
	}
	dir, err := filepath.Abs(f.approveVia)
	if err != nil {
		return err
	}
	answerer, err := policy.FilePair(dir)
	if err != nil {
		return err
	}
	o.Answerers = []policy.Answerer{answerer}
	o.OutOfReach = append(o.OutOfReach, dir)
	return nil
}

// knobs are both knobs as the flags say them; asking is the default where
// somebody can be asked.
func (f *sessionFlags) knobs(somebody bool) (s policy.State, err error) {
	if somebody {
		s.Approval = policy.Ask
	}
	if f.preset != "" {
		p, err := f.presets.Parse(f.preset)
		if err != nil {
			return s, err
		}
		s.Mode, s.Approval = p.Mode, min(p.Approval, s.Approval)
	} else if s.Mode, err = policy.ParseMode(f.sandbox); err != nil {
		return s, err
	}
	if f.approve != "" {
		s.Approval, err = policy.ParseApproval(f.approve)
	}
	return s, err
}

// acceptDanger warns of a mode that confines nothing, and needs a yes for it.
func (f *sessionFlags) acceptDanger(mode policy.Mode) error {
	if mode != policy.DangerFullAccess {
		return nil
	}
	if !f.yes && !haveTerminal() {
		return usagef("danger-full-access confines nothing; without a terminal it needs --yes")
	}
	fmt.Fprintln(os.Stderr, "dsh-run: warning: danger-full-access: nothing is confined, commands can change every file that you can")
	return nil
}

// finish closes the session and says what it ended. A question that was
// withdrawn gets to say so.
func (f *sessionFlags) finish(s *dsh.Session) {
	screen.settle()
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
