package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-run/dsh"
	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/ptc"
	"github.com/dsh-run/dsh/tools"
)

type doctorFlags struct{ json bool }

func newDoctor() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use: "doctor [--json]", Short: "Say what this machine can confine", Example: "  dsh-run doctor",
		Long: "Tries the sandbox and a program's child process, and says what each mode would\nenforce here. The exit code is 4 when commands or programs could not be confined,\nand 2 when the user's configuration cannot be used.",
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

// findings are what doctor found out.
type findings struct {
	Platform string               `json:"platform"`
	Kernel   string               `json:"kernel,omitempty"`
	Landlock int                  `json:"landlock_abi"`
	Backends []backendFinding     `json:"backends"`
	Modes    []policy.Confinement `json:"modes"`
	Programs programFinding       `json:"programs"`
	Tools    []toolFinding        `json:"tools"`
	Config   configFinding        `json:"config"`
	Presets  []presetFinding      `json:"presets"`
	Bash     string               `json:"bash,omitempty"`
}

type backendFinding struct {
	Name   string               `json:"name"`
	Works  bool                 `json:"works"`
	Why    string               `json:"why,omitempty"`
	Chosen bool                 `json:"chosen"`
	Modes  []policy.Confinement `json:"modes,omitempty"`
}

// configFinding is where the user's configuration is, or would be.
type configFinding struct {
	Path  string `json:"path,omitempty"`
	Found bool   `json:"found"`
	Why   string `json:"why,omitempty"` // it cannot be used
}

type presetFinding struct {
	Name     string          `json:"name"`
	Label    string          `json:"label"`
	Sentence string          `json:"sentence"`
	Mode     policy.Mode     `json:"sandbox"`
	Approval policy.Approval `json:"approve"`
}

// toolFinding says whether the sandbox mode governs what a tool changes.
type toolFinding struct {
	Name     string       `json:"name"`
	Effect   tools.Effect `json:"effect"`
	Confined bool         `json:"confined"`
}

// programFinding is the end of a trivial program in the child process.
type programFinding struct {
	Works       bool             `json:"works"`
	Why         string           `json:"why,omitempty"`
	Confinement *ptc.Confinement `json:"confinement,omitempty"`
}

func (f *doctorFlags) run(cmd *cobra.Command) error {
	found := examine(cmd.Context())
	var err error
	if f.json {
		err = printJSON(found)
	} else {
		_, err = fmt.Print(found.text())
		err = writeError(err)
	}
	switch {
	case err != nil:
		return err
	case !found.healthy():
		return &exitError{exitUnavailable, ""}
	case found.Config.Why != "":
		return &exitError{exitUsage, ""}
	}
	return nil
}

func examine(ctx context.Context) findings {
	found := findings{Platform: goruntime.GOOS + "/" + goruntime.GOARCH, Backends: []backendFinding{}, Tools: []toolFinding{}}
	config := found.readConfig()
	facts := config.chain().Probe(ctx, workingDir(), config.RequireFull != nil && *config.RequireFull)
	found.Kernel, found.Landlock, found.Modes = facts.Kernel, facts.Landlock, facts.Modes
	found.trySession(ctx)
	for _, b := range facts.Backends {
		found.Backends = append(found.Backends, backendFinding(b))
	}
	found.Bash, _ = exec.LookPath("bash")
	return found
}

// workingDir is where a workspace would be; empty where it cannot be told.
func workingDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

// trySession runs a trivial program and asks for the tools.
func (f *findings) trySession(ctx context.Context) {
	s, err := dsh.Open(ctx, &dsh.Options{Dir: os.TempDir(), Temporary: true})
	if err != nil {
		f.Programs.Why = err.Error()
		return
	}
	defer s.Close()
	for _, t := range s.Registry.Tools() {
		if t.Name != tools.RunCode {
			f.Tools = append(f.Tools, toolFinding{t.Name, t.Effect, t.Confined})
		}
	}
	f.Programs = tryProgram(ctx, s)
}

func tryProgram(ctx context.Context, s *dsh.Session) programFinding {
	report, err := s.Run(ctx, "return 1", nil)
	switch {
	case err != nil:
		return programFinding{Why: err.Error()}
	case report.Failure != nil:
		return programFinding{Why: report.Failure.Message}
	}
	return programFinding{Works: true, Confinement: &report.Confinement}
}

// readConfig lists the presets, those of the user's configuration included, and
// returns it; empty if it cannot be used.
func (f *findings) readConfig() config {
	f.Config.Path = userConfigPath()
	c, found, err := loadConfig(f.Config.Path)
	f.Config.Found = found
	var table *policy.PresetTable
	if err == nil {
		table, err = c.presets()
	}
	if err != nil {
		f.Config.Found, f.Config.Why = true, err.Error()
	}
	for _, p := range table.List() {
		f.Presets = append(f.Presets, presetFinding(p))
	}
	if err != nil {
		return config{}
	}
	return c
}

func (c configFinding) text() string {
	switch {
	case c.Path == "":
		return "none: neither XDG_CONFIG_HOME nor HOME names an absolute directory"
	case c.Why != "":
		return "cannot be used: " + c.Why
	case !c.Found:
		return c.Path + ", which is not there"
	default:
		return c.Path
	}
}

// effective are the tools that change something, and of those the ones that
// the mode governs or does not.
func (f findings) effective(confined bool) string {
	var names []string
	for _, t := range f.Tools {
		if t.Effect != tools.NoEffect && t.Confined == confined {
			names = append(names, t.Name)
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (f findings) healthy() bool {
	enforced := func(m policy.Confinement) bool { return m.Enforcement != policy.NotEnforced }
	return f.Programs.Works && slices.ContainsFunc(f.Modes, enforced)
}

func (f findings) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "platform   %s", f.Platform)
	if f.Kernel != "" {
		fmt.Fprintf(&b, ", kernel %s, Landlock ABI %d", f.Kernel, f.Landlock)
	}
	b.WriteString("\n")
	for _, backend := range f.Backends {
		fmt.Fprintf(&b, "backend    %-10s %s\n", backend.Name, backend.text())
	}
	for _, m := range f.Modes {
		fmt.Fprintf(&b, "mode       %-20s %s\n", m.Mode, modeText(m))
	}
	fmt.Fprintf(&b, "programs   %s\n", verdict(f.Programs.Works, f.Programs.Why))
	fmt.Fprintf(&b, "tools      governed by the mode: %s; with their own rights: %s\n", f.effective(true), f.effective(false))
	for _, p := range f.Presets {
		fmt.Fprintf(&b, "preset     %-20s %s, %s. %s: %s\n", p.Name, p.Mode, p.Approval, visible(p.Label), visible(p.Sentence))
	}
	fmt.Fprintf(&b, "config     %s\n", f.Config.text())
	if f.Bash == "" {
		b.WriteString("bash       not found in PATH: the bash tool cannot run\n")
	} else {
		fmt.Fprintf(&b, "bash       %s\n", f.Bash)
	}
	return b.String()
}

// modeText says what a mode is worth here.
func modeText(m policy.Confinement) string {
	switch {
	case m.Mode == policy.DangerFullAccess:
		return "not confined"
	case m.Enforcement == policy.NotEnforced:
		return "nothing would run"
	}
	text := fmt.Sprintf("%s by %s", m.Enforcement, m.Backend)
	if len(m.Reasons) > 0 {
		text += "; not governed: " + strings.Join(m.Reasons, ", ")
	}
	return text + "; hooks of git: " + string(m.VCSHooks)
}

// text says also how completely each mode would be enforced.
func (b backendFinding) text() string {
	text := verdict(b.Works, b.Why)
	for i, m := range b.Modes {
		text += fmt.Sprintf("%s %s %s", []string{":", ","}[min(i, 1)], m.Mode, m.Enforcement)
	}
	if !b.Chosen {
		text += "; not used, the configuration chooses others"
	}
	return text
}

func verdict(works bool, why string) string {
	if works {
		return "works"
	}
	return "does not work: " + why
}
