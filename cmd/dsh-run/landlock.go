package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dsh-run/dsh/sandbox"
)

const landlockExample = `  dsh-run landlock --rw /tmp/work --rw /dev/null -- make -C /tmp/work
  dsh-run landlock --ro /usr --ro /lib --ro /lib64 --ro ./data -- sort data/names
  dsh-run landlock --probe`

const landlockHelp = `Confines itself by Landlock and a system call filter, and becomes the command.
It is for programs in other languages that start the command line themselves.

Without --ro everything may be read and executed; with it, only what it names.
Nothing may be changed but what --rw names; a file or a device can be named
itself. Links are followed, and what is not there is an error. The command gets
no descriptors but its streams, core size 0, and, unless it leads a process
group, a session of its own.

--status-fd gets one line, as --probe prints it, when the command is confined and
about to be executed, and is closed by that. Where the kernel enforces only a
part and there is no --status-fd, stderr begins with this line:

  ` + sandbox.LaunchNotice + `

Exit codes: the command's own; 125 dsh-run itself failed or was called wrongly,
and the command did not run; 126 it cannot be executed; 127 it was not found.
The last three say why in one line on stderr: landlock-run: reason.`

type landlockFlags struct {
	sandbox.LaunchOptions
	probe bool
}

func newLandlock() *cobra.Command {
	var f landlockFlags
	cmd := &cobra.Command{
		Use:   "landlock [--ro PATH]… [--rw PATH]… [flags] -- argv…",
		Short: "Become a confined command: the launcher for other languages",
		Long:  landlockHelp, Example: landlockExample, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false)
	flags.StringArrayVar(&f.Readable, "ro", nil, "only `PATH` and what else is named may be read and executed; can be repeated")
	flags.StringArrayVar(&f.Writable, "rw", nil, "`PATH` may be changed; can be repeated")
	flags.BoolVar(&f.DenyMetadata, "deny-metadata", false, "refuse all changes of modes, owners, times and attributes")
	flags.IntVar(&f.Status, "status-fd", 0, "say on the descriptor `N`, 3 or higher, what is enforced")
	flags.BoolVar(&f.probe, "probe", false, "only say what this kernel enforces")
	return cmd
}

func (f *landlockFlags) run(cmd *cobra.Command, args []string) error {
	switch {
	case f.probe && (cmd.Flags().NFlag() > 1 || len(args) > 0):
		return flagsf("--probe stands alone")
	case f.probe:
		return printProbe()
	case cmd.Flags().Changed("status-fd") && f.Status == 0:
		return flagsf("--status-fd 0: want 3 or higher, the streams are the command's")
	case len(args) == 0:
		return flagsf("want a command after --")
	case cmd.ArgsLenAtDash() != 0:
		return flagsf("want -- before the command, got %q; a flag with several values is repeated", args[0])
	}
	f.Argv = args
	return sandbox.Launch(f.LaunchOptions)
}

func printProbe() error {
	facts, err := sandbox.ProbeLaunch()
	if err != nil {
		return err
	}
	_, err = fmt.Println(facts)
	return writeError(err)
}

// landlockCode is the exit code of the launcher when the command did not run.
func landlockCode(err error) int {
	var launch *sandbox.LaunchError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &launch):
		return launch.ExitCode
	default:
		return execOurs
	}
}
