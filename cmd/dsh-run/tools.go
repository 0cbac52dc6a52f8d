package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dsh-run/dsh"
	"github.com/dsh-run/dsh/ptc"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

const toolsExample = `  dsh-run tools
  dsh-run tools --sdk > tools.d.ts`

type toolsFlags struct {
	cwd       string
	names     []string
	sdk, json bool
}

func newTools() *cobra.Command {
	var f toolsFlags
	cmd := &cobra.Command{
		Use: "tools [flags]", Short: "List the tools", Example: toolsExample,
		Long: "Lists the tools that run and call have, as the configuration and --tools say: what\nthey can change and whether the sandbox confines them.",
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	cmd.Flags().BoolVar(&f.sdk, "sdk", false, "print the declarations that a model writes programs against")
	cmd.Flags().BoolVar(&f.json, "json", false, "print them with their schemas as JSON")
	cmd.Flags().StringVar(&f.cwd, "cwd", ".", "the workspace `DIR`, whose configuration counts")
	cmd.Flags().StringSliceVar(&f.names, "tools", nil, "only these tools, comma-separated")
	cmd.MarkFlagsMutuallyExclusive("sdk", "json")
	return cmd
}

func (f *toolsFlags) run(cmd *cobra.Command) error {
	s, err := f.open(cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	list := s.Registry.Tools()
	switch {
	case f.sdk:
		_, err := fmt.Print(ptc.Describe(list))
		return writeError(err)
	case f.json:
		return printJSON(toolObjects(list))
	default:
		return printTools(list)
	}
}

// open opens a session that has the tools and nothing else of what run and call
// would have.
func (f *toolsFlags) open(cmd *cobra.Command) (*dsh.Session, error) {
	of := &sessionFlags{tools: f.names, isolation: isolationProcess}
	if err := of.userConfig(cmd); err != nil {
		return nil, err
	}
	o := &dsh.Options{Dir: f.cwd, Temporary: true, Tools: of.tools, Local: &local.Options{}}
	workspace, err := of.workspaceConfig(o)
	if err != nil {
		return nil, err
	}
	of.say(workspace)
	return openSession(cmd, &dsh.Options{Dir: f.cwd, Temporary: true, Tools: o.Tools})
}

// toolObject is one tool as tools --json prints it.
type toolObject struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output,omitempty"`
	Effect      tools.Effect    `json:"effect"`
	Idempotent  bool            `json:"idempotent"`
	Confined    bool            `json:"confined"`
}

func toolObjects(list []tools.Tool) []toolObject {
	objects := []toolObject{}
	for _, t := range list {
		objects = append(objects, toolObject{t.Name, t.Description, t.Input, t.Output, t.Effect, t.Idempotent, t.Confined})
	}
	return objects
}

func printTools(list []tools.Tool) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TOOL\tCHANGES\tCONFINED\tWHAT IT DOES")
	for _, t := range list {
		confined := "no"
		if t.Confined {
			confined = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.Name, changes(t), confined, firstSentence(t.Description))
	}
	return writeError(w.Flush())
}

func changes(t tools.Tool) string {
	switch {
	case t.Name == tools.RunCode:
		return "what its calls do"
	case t.Effect == tools.NoEffect:
		return "nothing"
	case t.Effect == tools.Local:
		return "this machine"
	default:
		return "anything"
	}
}

func firstSentence(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if sentence, _, ok := strings.Cut(first, ". "); ok {
		return sentence + "."
	}
	return first
}
