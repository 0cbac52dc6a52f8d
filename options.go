package dsh

import (
	"log/slog"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/runtime"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

// Options of a session. Nil means all defaults, which are the strict ones.
type Options struct {
	// Dir is the workspace; paths of tools are relative to it.
	// Default: the process's working directory.
	Dir string
	// Mode says which files may be changed. Default: read-only.
	Mode policy.Mode
	// Approval says whether anyone is asked. Default: never; then every
	// question is a no.
	Approval policy.Approval
	// Answerers are asked in order. Default: none; then every question is a no.
	Answerers []policy.Answerer
	// QuestionDeadline is how long one question waits. Default: 10 minutes.
	QuestionDeadline time.Duration
	// Log is the path of the session's log, a new file outside of what commands
	// may change. Default: a new file in the user's state directory.
	Log string
	// Temporary keeps the log only until Close; then Log must be empty.
	// Default: false.
	Temporary bool
	// Resume is the path of the log of an earlier session to go on with, in
	// its workspace and with its modes: Mode, Approval and Preset are not looked
	// at. Then Log must be empty. Default: none, a new session.
	Resume string
	// Turn returns the Mode, Approval and Preset with which a session goes on,
	// given those of its log. It is called once, before anything is written but
	// the repair of a torn end; with its error Open ends. Default: those of the
	// log.
	Turn func(now policy.State) (policy.State, error)
	// Preset is the name under which Mode and Approval were chosen, for the log;
	// it tells apart those that name the same pair. Default: the first that
	// does.
	Preset string
	// Presets names pairs of mode and approval policy. Default: the built-in
	// ones.
	Presets *policy.PresetTable
	// Redact keeps texts that match out of the log. Default: none.
	Redact []session.Pattern
	// OutOfReach are files and directories that calls must not be able to
	// change, besides the log: a call whose mode would allow it is refused.
	// Default: none.
	OutOfReach []string
	// Tools names the tools of this machine that the session has.
	// Default: nil, all of them.
	Tools []string
	// Presentation says which tools a model is offered to call directly.
	// Default: all of them and run_code.
	Presentation tools.Presentation
	// RequireDenial refuses to ask for a wider mode unless the log has an
	// earlier denial of the same access. Default: false.
	RequireDenial bool
	// Local configures the tools of this machine, and how long a text result can
	// be before a model gets only its head and tail. Default: nil, its defaults.
	Local *local.Options
	// Engine runs the programs. Default: each in a confined child process.
	Engine runtime.Engine
	// Limits of every program. Default: the runtime's.
	Limits runtime.Limits
	// InFlight is how many calls of one program run at one time. Default: 10.
	InFlight int
	// By says in the log who chose Mode and Approval, or what Turn returns.
	// Default: "embedder".
	By string
	// Logger receives what cannot be a result, such as a panic of an observer.
	// Default: slog.Default().
	Logger *slog.Logger
}
