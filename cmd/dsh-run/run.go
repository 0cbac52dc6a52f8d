package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-run/dsh"
	"github.com/dsh-run/dsh/ptc"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/tools"
)

const runHelp = `Runs a TypeScript or JavaScript program: the body of an async function, in which
'tools' holds the tools (see 'dsh-run tools') and 'args' the arguments after --.

What it prints goes to stdout as it is printed, then the value it returns: a
string as it is, anything else as JSON.`

const runExample = `  dsh-run run program.ts
  dsh-run run --sandbox workspace-write fix.ts -- src 2026
  echo 'return (await tools.glob({pattern: "*.go"})).paths.length' | dsh-run run -`

type runFlags struct{ sessionFlags }

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use: "run [flags] FILE|- [-- args…]", Short: "Run a program", Long: runHelp, Example: runExample,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.register(cmd)
	f.registerProgram(cmd)
	return cmd
}

func (f *runFlags) run(cmd *cobra.Command, args []string) error {
	file, programArgs, err := splitArgs(cmd, args)
	if err != nil {
		return err
	}
	open, err := f.prepare(cmd)
	if err != nil {
		return err
	}
	limited, cancel := f.limitedRun(cmd.Context())
	defer cancel()
	source, err := readSource(limited, cmd.InOrStdin(), file)
	if err != nil {
		return err
	}
	s, err := open()
	if err != nil {
		return err
	}
	defer f.finish(s)
	ctx, abort := context.WithCancelCause(limited)
	defer abort(nil)
	live := newLive(&f.sessionFlags, abort)
	report, err := s.Run(ctx, source, &ptc.Run{
		Name: programName(file), Args: programArgs, OnLine: live.line, OnCall: live.call,
	})
	live.end()
	if err != nil {
		return refusedRun(ctx, err)
	}
	if f.json {
		return f.printJSON(s, report)
	}
	return f.printReport(report)
}

// splitArgs separates the program's file from its arguments.
func splitArgs(cmd *cobra.Command, args []string) (file string, programArgs json.RawMessage, err error) {
	own := len(args)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		own = dash
	}
	switch {
	case own == 0:
		return "", nil, flagsf("want a program: a file, or - for stdin")
	case own > 1:
		return "", nil, flagsf("want one program, got %s; arguments of the program go after --", strings.Join(args[:own], " "))
	}
	programArgs, err = json.Marshal(append([]string{}, args[own:]...))
	return args[0], programArgs, err
}

func programName(file string) string {
	if file == "-" {
		return "stdin.ts"
	}
	return filepath.Base(file)
}

var programSuffixes = []string{".ts", ".js", ".mjs"}

// readSource reads a program from a file, or from stdin for "-".
func readSource(ctx context.Context, stdin io.Reader, file string) (string, error) {
	if file == "-" {
		source, err := readStdin(ctx, stdin, "the program")
		return string(source), err
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", usagef("there is no program %s", file)
	case err != nil:
		return "", usagef("read the program: %w", err)
	case info.IsDir():
		return "", usagef("%s is a directory, want the file of a program", file)
	case !info.Mode().IsRegular():
		return "", usagef("%s is no regular file; use - to read a program from stdin", file)
	}
	if !hasProgramSuffix(file) {
		return "", usagef("%s: want a file ending in %s", file, strings.Join(programSuffixes, ", "))
	}
	source, err := os.ReadFile(file)
	if err != nil {
		return "", usagef("read the program: %w", err)
	}
	return string(source), nil
}

func hasProgramSuffix(file string) bool {
	for _, suffix := range programSuffixes {
		if strings.HasSuffix(file, suffix) {
			return true
		}
	}
	return false
}

// refusedRun is the end of a run that did not begin.
func refusedRun(ctx context.Context, err error) error {
	if timedOut(ctx) {
		return &exitError{exitTimeout, err.Error()}
	}
	var refused *tools.Error
	if errors.As(err, &refused) {
		return &exitError{callExit(tools.Result{Error: refused}), refused.Error()}
	}
	return &exitError{exitFailed, err.Error()}
}

func (f *runFlags) printReport(r ptc.Report) error {
	if r.Failure == nil {
		if err := printValue(r.Value); err != nil {
			return err
		}
	} else if !f.quiet {
		f.printFailure(r)
	}
	if code := runExit(r); code != exitOK {
		return &exitError{code, failureLine(r)}
	}
	return nil
}

// printValue prints a string as it is, and anything else as JSON.
func printValue(value json.RawMessage) error {
	if value == nil {
		return nil
	}
	text := string(value)
	if s := ""; value[0] == '"' && json.Unmarshal(value, &s) == nil {
		text = s
	}
	_, err := fmt.Println(text)
	return writeError(err)
}

func (f *runFlags) printFailure(r ptc.Report) {
	if r.Failure.Stack != "" {
		fmt.Fprintln(os.Stderr, r.Failure.Stack)
	}
	for _, e := range r.Effects {
		if e.State != ptc.EffectNotStarted {
			f.remark("%s %s may have changed something: %s", e.ID, e.Tool, e.State)
		}
	}
}

// failureLine says in one line why the exit code is not 0.
func failureLine(r ptc.Report) string {
	failure := r.Failure
	if failure == nil {
		return "a call found no sandbox, so it did not run: see 'dsh-run doctor'"
	}
	kind := string(failure.Kind)
	switch failure.Kind {
	case runtime.Timeout:
		kind += " of the " + string(failure.Clock) + " clock"
	case runtime.SandboxUnavailable:
		return kind + ": " + failure.Message + " (--isolation in-process); 'dsh-run doctor' says what works here"
	}
	if failure.Line > 0 {
		return fmt.Sprintf("%s at line %d, column %d: %s", kind, failure.Line, failure.Column, failure.Message)
	}
	return kind + ": " + failure.Message
}

// runObject is what run --json prints.
type runObject struct {
	ptc.Report
	Session string `json:"session"`
	Log     string `json:"log"`
}

func (f *runFlags) printJSON(s *dsh.Session, r ptc.Report) error {
	if err := printJSON(runObject{Report: r, Session: s.Log().ID(), Log: s.Log().Path()}); err != nil {
		return err
	}
	if code := runExit(r); code != exitOK {
		return &exitError{code, ""}
	}
	return nil
}

func printJSON(v any) error {
	enc := json.NewEncoder(os.Stdout)
	enc.SetEscapeHTML(false)
	return writeError(enc.Encode(v))
}

// writeError is the end of a command whose results nobody could read.
func writeError(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitFailed, "write the result: " + err.Error()}
}
