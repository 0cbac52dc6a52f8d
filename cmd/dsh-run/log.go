package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/dsh-run/dsh/session"
)

func newLog() *cobra.Command {
	cmd := &cobra.Command{
		Use: "log", Short: "Look at session logs", Example: "  dsh-run log show session.jsonl",
		Long: `A session's log is a file with one JSON event a line. Each line carries the hash of
the one before: that shows accidents and careless edits, not a determined author.

All subcommands read past damage, name each bad line by number and byte, and then
exit with 1.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLogShow(), newLogVerify(), newLogExport())
	return cmd
}

func newLogShow() *cobra.Command {
	var view logView
	cmd := &cobra.Command{
		Use: "show FILE", Short: "Print a session as a tree",
		Example: "  dsh-run log show session.jsonl\n  dsh-run log show --failed session.jsonl\n  dsh-run log show --depth 1 session.jsonl",
		Long: `Prints one line for each call, those of a program under it, with how it ended and
how long it took, and below it the questions that were asked about it, what was
printed and what else happened. Bad lines of the file stand where they are in it.

Long arguments, lines and reasons are cut; 'log export' has them whole.`,
		Args: exactly(1, "one log file"),
		RunE: func(_ *cobra.Command, args []string) error { return showLog(args[0], view) },
	}
	cmd.Flags().IntVar(&view.depth, "depth", 0, "show so many levels and count what is below: 1 is without the calls of programs (default: all)")
	cmd.Flags().BoolVar(&view.failed, "failed", false, "only calls that failed, were denied or have no result, and the calls that made them")
	return cmd
}

func showLog(path string, view logView) error {
	if view.depth < 0 {
		return flagsf("--depth %d: want 1 or more", view.depth)
	}
	tree := newLogTree(path)
	if err := session.Survey(path, tree.event, tree.damage); err != nil {
		return logError(err)
	}
	view.w = bufio.NewWriter(os.Stdout)
	view.show(tree)
	if err := view.w.Flush(); err != nil {
		return writeError(err)
	}
	return damageError(path, tree.events, tree.bad)
}

// logError tells a file that is not there from one that cannot be read.
func logError(err error) error {
	if open := (*session.OpenError)(nil); errors.As(err, &open) {
		return &usageError{err: err}
	}
	return &exitError{exitFailed, err.Error()}
}

// damageError is the error of a log with events and bad lines; nil for a whole
// one.
func damageError(path string, events, bad int) error {
	switch {
	case bad > 0:
		return &exitError{exitFailed, fmt.Sprintf("%s: damaged, %s", path, counted(bad, "bad line"))}
	case events == 0:
		return &exitError{exitFailed, path + ": there is no event in it"}
	}
	return nil
}

// counted is "1 line", "2 lines".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
