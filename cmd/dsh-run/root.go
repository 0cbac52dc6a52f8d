package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

const rootHelp = `dsh-run runs TypeScript programs whose calls of tools are checked, confined and
written down, one by one.

Nothing may be changed unless --sandbox says so, and on Linux the kernel sees to
it. What is refused, unknown or unanswered does not happen.

Exit codes: 0 ok; 1 the program or tool failed; 2 usage; 3 a denial or a missing
approval ended it; 4 no sandbox works here; 124 time limit; 130 interrupted.`

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string) int {
	root := newRoot()
	root.SetArgs(args)
	manner := mannerOf(root, args)
	received := func() int { return 0 }
	if !manner.becomes {
		ctx, received = catchSignals(ctx)
	}
	ran, err := root.ExecuteContextC(ctx)
	manner.say(ran, err)
	if signalled := received(); signalled != 0 {
		return signalled
	}
	return manner.code(err)
}

// manner is how a subcommand speaks and ends.
type manner struct {
	name    string // what its own words on stderr begin with
	oneLine bool   // and they are one line
	code    func(error) int
	// becomes: it executes another program in its place, which must find signals
	// as this process has found them.
	becomes bool
}

var (
	usualManner = manner{name: "dsh-run", code: exitCodeOf}
	manners     = map[string]manner{
		"exec":     {name: "dsh-run", code: execCode},
		"landlock": {name: "landlock-run", oneLine: true, code: landlockCode, becomes: true},
	}
)

func mannerOf(root *cobra.Command, args []string) manner {
	if cmd, _, err := root.Find(args); err == nil {
		if m, special := manners[cmd.Name()]; special {
			return m
		}
	}
	return usualManner
}

// say writes to stderr why a subcommand failed.
func (m manner) say(ran *cobra.Command, err error) {
	message := messageOf(err)
	switch {
	case message == "":
		return
	case m.oneLine:
		fmt.Fprintf(os.Stderr, "%s: %s\n", m.name, visible(message))
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", m.name, message)
	if usage := (*usageError)(nil); errors.As(err, &usage) && usage.flags {
		fmt.Fprintf(os.Stderr, "'%s --help' has the flags and an example\n", ran.CommandPath())
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use: "dsh-run", Short: "Run programs that call tools, confined and logged", Long: rootHelp,
		SilenceErrors: true, SilenceUsage: true, Version: version(),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagsf("%w", err) })
	root.AddCommand(newRun(), newCall(), newTools(), newExec(), newDoctor(), newLog(), newLandlock())
	root.SetHelpCommand(newHelp())
	return root
}

// version is that of the module, or the commit that this was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown: it was built without information about itself"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	text := info.Main.Version
	if commit := settings["vcs.revision"]; commit != "" && !strings.Contains(text, commit[:12]) {
		text += " " + commit
	}
	return text + " " + info.GoVersion
}

// newHelp is cobra's help, which takes a topic that is not there for no mistake.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about any command", Example: "  dsh-run help log show",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return flagsf("there is no command %q to help with", strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag()
			about.InitDefaultVersionFlag()
			return about.Help()
		},
		ValidArgsFunction: completeCommand,
	}
}

// completeCommand completes the name of a command behind those that lead to it.
func completeCommand(cmd *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	if about, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
		for _, c := range about.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// exactly is cobra.ExactArgs whose error is one of usage.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return flagsf("want %s, got %d arguments", what, len(args))
		}
		return nil
	}
}
