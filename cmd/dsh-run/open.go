package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dsh-run/dsh"
	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
)

// byCommand says in the log who chose a knob.
const byCommand = "command"

// prepare completes the flags by the configuration, and returns what opens the
// session. It writes nothing. What cannot be opened is a usage error: nothing has
// run.
func (f *sessionFlags) prepare(cmd *cobra.Command) (func() (*dsh.Session, error), error) {
	if err := f.userConfig(cmd); err != nil {
		return nil, err
	}
	o, err := f.options(cmd)
	if err != nil {
		return nil, err
	}
	workspace, err := f.workspaceConfig(o)
	if err != nil {
		return nil, err
	}
	start := f.begin
	if f.resume != "" {
		start = f.goOn
	}
	return func() (*dsh.Session, error) {
		s, err := start(cmd, o, workspace)
		if err == nil {
			f.sayPlantable(s.Permissions().State())
		}
		return s, err
	}, nil
}

// begin opens a new session.
func (f *sessionFlags) begin(cmd *cobra.Command, o *dsh.Options, workspace *tightening) (*dsh.Session, error) {
	workspace.knobs(&o.Mode, &o.Approval)
	f.say(workspace)
	if err := f.acceptDanger(o.Mode); err != nil {
		return nil, err
	}
	return openSession(cmd, o)
}

// sayPlantable warns of a configuration that is not there, but that commands
// could make for later runs.
func (f *sessionFlags) sayPlantable(state policy.State) {
	path := userConfigPath()
	roots := policy.WritableRoots(policy.Scope{Mode: state.Mode, Root: state.Root})
	if path == "" || roots.All || len(f.outOfReach) > 0 || roots.Judge(path) == policy.Outside {
		return
	}
	f.remark("commands may make %s, which later runs would obey; choose another workspace or XDG_CONFIG_HOME", path)
}

func openSession(cmd *cobra.Command, o *dsh.Options) (*dsh.Session, error) {
	s, err := dsh.Open(context.WithoutCancel(cmd.Context()), o)
	if place := (*session.PlaceError)(nil); errors.As(err, &place) {
		return nil, usagef("%w; name one with --log FILE, or keep none with --log none", err)
	}
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		return nil, usage
	}
	if err != nil {
		return nil, &usageError{err: err}
	}
	return s, nil
}

// userConfig fills the flags from the user's configuration.
func (f *sessionFlags) userConfig(cmd *cobra.Command) error {
	path := userConfigPath()
	c, found, err := loadConfig(path)
	if err != nil || !found {
		return err
	}
	f.outOfReach = append(f.outOfReach, path)
	return c.applyTo(f, cmd.Flags().Changed)
}

// workspaceConfig narrows the options, but for both knobs, by the workspace's
// configuration.
func (f *sessionFlags) workspaceConfig(o *dsh.Options) (*tightening, error) {
	t := &tightening{file: configName, flags: f, options: o}
	dir := o.Dir
	if dir == "" {
		header, err := session.ReadHeader(f.resume)
		if err != nil {
			return nil, &usageError{err: err}
		}
		dir = header.Cwd
	}
	root, err := policy.Canonical(dir)
	if err != nil {
		return nil, &usageError{err: err}
	}
	if t.wish, _, err = loadConfig(filepath.Join(root, configName)); err != nil {
		return nil, err
	}
	return t, t.limits()
}

func (f *sessionFlags) say(t *tightening) {
	for _, remark := range t.remarks {
		f.remark("%s", remark)
	}
}

// goOn opens a session that goes on. The knobs that were given on the command
// line become its events, and so do the tighter ones of its workspace.
func (f *sessionFlags) goOn(cmd *cobra.Command, o *dsh.Options, workspace *tightening) (*dsh.Session, error) {
	o.Turn = func(now policy.State) (policy.State, error) { return f.turn(cmd, now, workspace) }
	s, err := openSession(cmd, o)
	if err == nil {
		f.sayRepairs(s.Repairs())
	}
	return s, err
}

func (f *sessionFlags) turn(cmd *cobra.Command, now policy.State, workspace *tightening) (policy.State, error) {
	wish, err := f.chosen(cmd, now)
	if err != nil {
		return wish, flagsf("%w", err)
	}
	workspace.knobs(&wish.Mode, &wish.Approval)
	f.say(workspace)
	return wish, f.acceptDanger(wish.Mode)
}

// chosen is the state of a session with the knobs that were given.
func (f *sessionFlags) chosen(cmd *cobra.Command, state policy.State) (policy.State, error) {
	given := cmd.Flags().Changed
	wish, err := f.knobs(true)
	if err != nil {
		return state, err
	}
	if given("sandbox") || given("preset") {
		state.Mode = wish.Mode
	}
	if given("approve") || given("preset") {
		state.Approval = wish.Approval
	}
	if given("preset") {
		state.Preset = f.preset
	}
	return state, nil
}

func (f *sessionFlags) sayRepairs(r dsh.Repairs) {
	if r.Torn != nil {
		f.remark("the log ended in a torn line of %d bytes, which was set aside", r.Torn.Bytes)
	}
	for _, c := range r.Calls {
		f.remark("the call %s of %s had no end in the log and got one: %s", c.CallID, visible(c.Tool), c.Error.Code)
	}
	for _, job := range r.Jobs {
		f.remark("the background job %s had no end in the log; it may still run", job.JobID)
	}
	for _, id := range r.Execs {
		f.remark("the command %s had no end in the log; it may still run", id)
	}
}
