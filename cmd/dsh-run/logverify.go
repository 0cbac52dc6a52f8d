package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/dsh-run/dsh/session"
)

func newLogVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify FILE", Short: "Check a log's chain of hashes and its blobs", Example: "  dsh-run log verify session.jsonl",
		Long: `Checks that each line of a log is an event that follows the one before, and that
each blob which an event names lies beside the log with its length and hash.

A log without its folder is a copy: its blobs are not checked, which is said.

What a process that was killed left as a torn end breaks no chain; resuming sets
it aside.

Names the bad lines and blobs on stderr, the first 20, with exit code 1. Prints how
many events and blobs were checked.`,
		Args: exactly(1, "one log file"),
		RunE: func(_ *cobra.Command, args []string) error { return verifyLog(args[0]) },
	}
}

// maxProblems is how many problems are named.
const maxProblems = 20

// verifier counts what it checks and tells what is wrong.
type verifier struct {
	path                    string
	events, lines, problems int
	blobs                   map[session.Ref]error // what was checked, and how that went
	alone                   bool                  // the log's folder is not there, and so no blob
	torn                    bool                  // the last line was never written whole
}

func verifyLog(path string) error {
	_, err := os.Lstat(session.Folder(path))
	v := &verifier{path: path, blobs: map[session.Ref]error{}, alone: errors.Is(err, fs.ErrNotExist)}
	if err := session.Survey(path, v.event, v.line); err != nil {
		return logError(err)
	}
	if v.events == 0 && v.problems == 0 {
		return damageError(path, 0, 0)
	}
	if more := v.problems - maxProblems; more > 0 {
		fmt.Fprintf(os.Stderr, "%s: and %s\n", path, counted(more, "more problem"))
	}
	if _, err := fmt.Println(v.summary()); err != nil {
		return writeError(err)
	}
	if v.problems > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

func (v *verifier) line(e *session.LineError) {
	v.lines++
	v.torn = v.torn || e.Torn
	v.tell("line %d (byte %d): %s", e.Line, e.Offset, visible(e.Err.Error()))
}

func (v *verifier) event(e session.Event) bool {
	v.events++
	eachRef(e, func(member string, ref session.Ref, err error) {
		if err == nil {
			err = v.check(ref)
		}
		if err != nil {
			v.tell("event %d (%s): %s: %s", e.Seq, e.Type, member, visible(err.Error()))
		}
	})
	return true
}

func (v *verifier) check(ref session.Ref) error {
	err, checked := v.blobs[ref]
	if !checked {
		if !v.alone {
			err = session.CheckBlob(v.path, ref)
		}
		v.blobs[ref] = err
	}
	return err
}

func (v *verifier) tell(format string, args ...any) {
	if v.problems++; v.problems <= maxProblems {
		fmt.Fprintf(os.Stderr, "%s: %s\n", v.path, fmt.Sprintf(format, args...))
	}
}

func (v *verifier) summary() string {
	chain := "the chain is whole"
	switch {
	case v.torn && v.lines == 1:
		chain = "the chain is whole up to its torn end"
	case v.lines > 0:
		chain = "the chain is broken"
	}
	text := fmt.Sprintf("%s: %s, %s, %s", v.path, counted(v.events, "event"), chain, counted(len(v.blobs), "blob"))
	if v.alone && len(v.blobs) > 0 {
		text += fmt.Sprintf(" NOT checked, since %s is not there", session.Folder(v.path))
	} else {
		text += " checked"
	}
	if v.problems > 0 {
		text += ", " + counted(v.problems, "problem")
	}
	return text
}
