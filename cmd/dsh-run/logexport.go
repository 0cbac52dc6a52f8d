package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"os"

	"github.com/spf13/cobra"

	"github.com/dsh-run/dsh/session"
)

//go:embed logexport.txt
var exportHelp string

func newLogExport() *cobra.Command {
	return &cobra.Command{
		Use: "export FILE", Short: "Print a session as one JSON document", Long: exportHelp,
		Example: "  dsh-run log export session.jsonl\n  dsh-run log export session.jsonl | jq '.calls[].calls[] | select(.result.error) | .call.tool'",
		Args:    exactly(1, "one log file"),
		RunE:    func(_ *cobra.Command, args []string) error { return exportLog(args[0]) },
	}
}

func exportLog(path string) error {
	x := newExport()
	if err := session.Survey(path, x.event, x.damage); err != nil {
		return logError(err)
	}
	w := &exportWriter{w: bufio.NewWriter(os.Stdout), path: path, problems: x.problems}
	w.document(x)
	if w.err == nil {
		w.err = w.w.Flush()
	}
	if w.err != nil {
		return writeError(w.err)
	}
	if blobs := len(w.problems) - len(x.problems); blobs > 0 && len(x.problems) == 0 {
		return &exitError{exitFailed, path + ": " + counted(blobs, "blob") + " cannot be read"}
	}
	return damageError(path, x.events, len(x.problems))
}

// export is a session as the document has it, its blobs aside.
type export struct {
	session     record
	events      int
	permissions []record
	calls       []*exportCall
	execs, jobs []*exportWork
	other       []exportEvent
	problems    []exportProblem

	byCall     map[string]*exportCall
	byWork     map[string]*exportWork
	byQuestion map[string]*exportQuestion
}

type exportCall struct {
	ID        string            `json:"id"`
	Call      record            `json:"call"`
	Started   record            `json:"started,omitempty"`
	Result    record            `json:"result"`
	Approvals []*exportQuestion `json:"approvals,omitempty"`
	Program   *exportProgram    `json:"program,omitempty"`
	Printed   []record          `json:"printed,omitempty"`
	Other     []exportEvent     `json:"other,omitempty"`

	calls []*exportCall
}

type exportQuestion struct {
	ID      string   `json:"id"`
	Asked   record   `json:"asked"`
	Decided record   `json:"decided"`
	Late    []record `json:"late,omitempty"`
}

type exportProgram struct {
	Source *string `json:"source,omitempty"`
	Start  record  `json:"start"`
	End    record  `json:"end"`
}

// exportWork is a command or a job.
type exportWork struct {
	ID    string `json:"id"`
	Start record `json:"start"`
	End   record `json:"end"`
}

// exportEvent is an event that has no place of its own.
type exportEvent struct {
	Seq  uint64          `json:"seq"`
	Time string          `json:"time"`
	Type session.Type    `json:"type"`
	Data json.RawMessage `json:"data"`
}

type exportProblem struct {
	Line    int    `json:"line,omitempty"`
	Byte    *int64 `json:"byte,omitempty"`
	Seq     uint64 `json:"seq,omitempty"`
	Problem string `json:"problem"`
}

func newExport() *export {
	return &export{
		byCall: map[string]*exportCall{}, byWork: map[string]*exportWork{}, byQuestion: map[string]*exportQuestion{},
	}
}

func (x *export) damage(e *session.LineError) {
	x.problems = append(x.problems, exportProblem{Line: e.Line, Byte: &e.Offset, Problem: e.Err.Error()})
}
