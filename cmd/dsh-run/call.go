package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-run/dsh/tools"
)

const callExample = `  dsh-run call read '{"file_path": "README.md"}'
  dsh-run call bash '{"command": "go vet ./..."}'
  echo '{"pattern": "TODO"}' | dsh-run call --json grep -`

type callFlags struct{ sessionFlags }

func newCall() *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use: "call [flags] TOOL [JSON|-]", Short: "Call one tool", Example: callExample,
		Long: "Calls one tool with the arguments of a JSON object, through the same checks as a\nprogram's calls, and prints what a model would see of the result.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	f.register(cmd)
	return cmd
}

func (f *callFlags) run(cmd *cobra.Command, args []string) error {
	open, err := f.prepare(cmd)
	if err != nil {
		return err
	}
	ctx, cancel := f.limited(cmd.Context())
	defer cancel()
	raw, err := readArguments(ctx, cmd.InOrStdin(), args[1:])
	if err != nil {
		return err
	}
	s, err := open()
	if err != nil {
		return err
	}
	defer f.finish(s)
	result := s.Call(ctx, args[0], raw)
	if err := f.print(result); err != nil {
		return err
	}
	return f.exit(ctx, result)
}

func readArguments(ctx context.Context, stdin io.Reader, args []string) (json.RawMessage, error) {
	switch {
	case len(args) == 0:
		return json.RawMessage("{}"), nil
	case args[0] != "-":
		return json.RawMessage(args[0]), nil
	}
	return readStdin(ctx, stdin, "the arguments")
}

// callObject is what call --json prints.
type callObject struct {
	Value   json.RawMessage `json:"value,omitempty"`
	Content []tools.Content `json:"content"`
	Error   *tools.Error    `json:"error,omitempty"`
}

func (f *callFlags) print(r tools.Result) error {
	if f.json {
		return printJSON(callObject{Value: r.Value, Content: r.Content, Error: r.Error})
	}
	if r.Error != nil {
		return nil
	}
	for _, block := range r.Content {
		text := strings.TrimSuffix(block.Text, "\n")
		if block.Type != "text" {
			text = fmt.Sprintf("[%s, %s, %d bytes; --json has it]", block.Type, block.MIMEType, len(block.Data))
		}
		if _, err := fmt.Println(text); err != nil {
			return writeError(err)
		}
	}
	return nil
}

func (f *callFlags) exit(ctx context.Context, r tools.Result) error {
	code := callExit(r)
	if timedOut(ctx) {
		code = exitTimeout
	}
	switch {
	case code == exitOK:
		return nil
	case f.json || r.Error == nil:
		return &exitError{code, ""}
	default:
		return &exitError{code, r.Error.Error()}
	}
}
