package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/dsh-run/dsh/session"
)

func newLog() *cobra.Command {
	cmd := &cobra.Command{
		Use: "log", Short: "Look at session logs", Example: "  dsh-run log show session.jsonl",
		Long: "A session's log is a file with one JSON event a line. Each line carries the hash of\nthe one before: that shows accidents and careless edits, not a determined author.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLogShow(), newLogVerify())
	return cmd
}

func newLogShow() *cobra.Command {
	return &cobra.Command{
		Use: "show FILE", Short: "Print a session as a tree", Example: "  dsh-run log show session.jsonl",
		Long: "Prints the calls of a session, those of a program under it, with their durations\nand decisions.",
		Args: exactly(1, "one log file"),
		RunE: func(_ *cobra.Command, args []string) error { return showLog(args[0]) },
	}
}

func newLogVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify FILE", Short: "Check a log's chain of hashes", Example: "  dsh-run log verify session.jsonl",
		Long: "Reads a log and checks that each line is an event that follows the one before.\nNames the first line that is not, with exit code 1.",
		Args: exactly(1, "one log file"),
		RunE: func(_ *cobra.Command, args []string) error { return verifyLog(args[0]) },
	}
}

func verifyLog(path string) error {
	events := 0
	err := session.Read(path, func(session.Event) bool {
		events++
		return true
	})
	if err == nil && events == 0 {
		err = fmt.Errorf("%s: there is no event in it", path)
	}
	if err != nil {
		return logError(err)
	}
	_, err = fmt.Printf("%s: %d events, the chain is whole\n", path, events)
	return writeError(err)
}

// logError tells a file that is not there from one that is broken.
func logError(err error) error {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return &usageError{err: err}
	}
	return &exitError{exitFailed, err.Error()}
}

func showLog(path string) error {
	tree := newLogTree()
	readErr := session.Read(path, func(e session.Event) bool {
		tree.add(e)
		return true
	})
	if path := (*fs.PathError)(nil); errors.As(readErr, &path) {
		return logError(readErr)
	}
	if _, err := fmt.Print(tree.text()); err != nil {
		return writeError(err)
	}
	if readErr != nil {
		return logError(readErr)
	}
	return nil
}
