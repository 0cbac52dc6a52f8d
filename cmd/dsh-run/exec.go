package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/dsh-run/dsh"
	"github.com/dsh-run/dsh/policy"
)

// The exit codes of exec that are not the command's own.
const (
	execOurs      = 125
	execCannotRun = 126
	execNotFound  = 127
)

const execExample = `  dsh-run exec -- make test
  dsh-run exec --sandbox workspace-write -- npm install`

type execFlags struct{ sessionFlags }

func newExec() *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use: "exec [flags] -- argv…", Short: "Run a command confined", Example: execExample,
		Long: `Runs a command with its own streams and exit code, confined as --sandbox says.
Its stderr is a pipe, so that denials can be recognised.

Exit codes: the command's own; 124 time limit; 125 the sandbox or dsh-run itself
failed, the command did not run; 126 it cannot be executed; 127 it was not found;
128+n it was ended by the signal n.`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	cmd.Flags().SetInterspersed(false)
	f.register(cmd)
	return cmd
}

func (f *execFlags) run(cmd *cobra.Command, argv []string) error {
	if len(argv) == 0 {
		return flagsf("want a command after --")
	}
	open, err := f.prepare(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := f.limited(cmd.Context())
	defer cancel()
	s, err := open()
	if err != nil {
		return err
	}
	defer f.finish(s)
	command := exec.Command(argv[0], argv[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	end, err := s.Exec(ctx, command)
	if err != nil && !timedOut(ctx) {
		return execFailure(err)
	}
	f.explain(s, end)
	if timedOut(ctx) {
		return &exitError{exitTimeout, errTimeLimit.Error()}
	}
	return execExit(end)
}

// explain says on stderr what the sandbox denied, and what was taken back and
// ended afterwards.
func (f *execFlags) explain(s *dsh.Session, end dsh.ExecEnd) {
	if c := end.Confinement; c.Denied {
		f.remark("%s %s", c.Marker(), deniedPath(c))
	}
	for _, u := range end.Confinement.Undone {
		f.remark("took back %s: %s", visible(u.Path), visible(u.What))
	}
	if end.Leftovers > 0 {
		f.remark("ended what outlived the command; processes: %d", end.Leftovers)
	}
}

func deniedPath(c policy.Confinement) string {
	if c.Path == "" {
		return ""
	}
	return visible(c.Path)
}

func execFailure(err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return &exitError{execNotFound, err.Error()}
	case errors.Is(err, fs.ErrPermission):
		return &exitError{execCannotRun, err.Error()}
	default:
		return &exitError{execOurs, err.Error()}
	}
}

func execExit(end dsh.ExecEnd) error {
	switch {
	case end.Signal != 0:
		return &exitError{128 + int(end.Signal), ""}
	case end.ExitCode != 0:
		return &exitError{end.ExitCode, ""}
	default:
		return nil
	}
}

// execCode replaces the exit codes of dsh-run's own failures, which other
// subcommands tell apart.
func execCode(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return exit.code
	default:
		return execOurs
	}
}
