package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/review"
	"github.com/dsh-run/dsh/sandbox"
	"github.com/dsh-run/dsh/session"
)

// configName is the base name of every configuration file.
const configName = "dsh-run.yaml"

// config is what a configuration file can say. Its keys are the names of
// flags, besides those below; what is nil or empty was not said.
type config struct {
	Sandbox     *policy.Mode     `yaml:"sandbox"`
	Preset      *string          `yaml:"preset"`
	RequireFull *bool            `yaml:"require-full"`
	Approve     *policy.Approval `yaml:"approve"`
	ApproveVia  *string          `yaml:"approve-via"`
	Isolation   *string          `yaml:"isolation"`
	Timeout     *time.Duration   `yaml:"timeout"`
	Compute     *time.Duration   `yaml:"compute"`
	MaxCalls    *int             `yaml:"max-calls"`
	MaxOutput   *size            `yaml:"max-output"`
	Memory      *size            `yaml:"memory"`
	Tools       []string         `yaml:"tools"`
	Backends    []string         `yaml:"backends"`
	Log         *string          `yaml:"log"`
	Quiet       *bool            `yaml:"quiet"`

	// RequireDenial refuses to ask for a wider mode without an earlier denial.
	RequireDenial *bool `yaml:"require_denial"`
	// Presets are further names for --preset.
	Presets []presetConfig `yaml:"presets"`
	// Runner is the operator's own program that confines commands.
	Runner *runnerConfig `yaml:"runner"`
	// Redact are texts that are kept out of the log.
	Redact []session.Pattern `yaml:"redact"`
}

type presetConfig struct {
	Name     string          `yaml:"name"`
	Label    string          `yaml:"label"`
	Sentence string          `yaml:"sentence"`
	Sandbox  policy.Mode     `yaml:"sandbox"`
	Approve  policy.Approval `yaml:"approve"`
}

type runnerConfig struct {
	Name         string   `yaml:"name"`
	Argv         []string `yaml:"argv"`
	FailureExits []int    `yaml:"failure_exits"`
	FailureLine  string   `yaml:"failure_line"`
	InfoLines    []string `yaml:"info_lines"`
	Ungoverned   []string `yaml:"ungoverned"`
}

// chain is what may confine commands.
func (c config) chain() sandbox.Chain {
	chain := sandbox.Chain{Backends: c.Backends}
	if c.Runner != nil {
		runner := sandbox.Runner(*c.Runner)
		chain.Runner = &runner
	}
	return chain
}

// userConfigPath is where the user's file is, whether it is there or not;
// empty where the user has no directory for it.
func userConfigPath() string {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(home) {
			return ""
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "dsh-run", configName)
}

// loadConfig reads a configuration file. One that is not there says nothing;
// found tells the two apart.
func loadConfig(path string) (c config, found bool, err error) {
	info, err := os.Stat(path)
	switch {
	case path == "" || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return c, false, nil
	case err != nil:
		return c, false, usagef("read the configuration: %w", err)
	case !info.Mode().IsRegular():
		return c, false, usagef("%s is no regular file, want a configuration", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return c, false, usagef("read the configuration: %w", err)
	}
	if err := review.Decode(path, data, &c); err != nil {
		return c, false, usagef("%w", err)
	}
	if err := c.check(); err != nil {
		return c, false, usagef("%s: %w", path, err)
	}
	return c, true, nil
}

func (c config) check() error {
	switch {
	case c.Sandbox != nil && c.Preset != nil:
		return errors.New("sandbox and preset exclude each other")
	case c.Timeout != nil && *c.Timeout <= 0:
		return fmt.Errorf("timeout %v: want more than 0", *c.Timeout)
	case c.Compute != nil && *c.Compute <= 0:
		return fmt.Errorf("compute %v: want more than 0", *c.Compute)
	case c.MaxCalls != nil && *c.MaxCalls <= 0:
		return fmt.Errorf("max-calls %d: want 1 or more", *c.MaxCalls)
	case c.Runner != nil && c.Backends != nil:
		return errors.New("runner and backends exclude each other")
	case c.ApproveVia != nil && !filepath.IsAbs(*c.ApproveVia):
		return fmt.Errorf("approve-via %q: want an absolute path", *c.ApproveVia)
	case c.Log != nil && *c.Log != noLog && !filepath.IsAbs(*c.Log):
		return fmt.Errorf("log %q: want an absolute path, or %s", *c.Log, noLog)
	}
	return c.chain().Check()
}

// applyTo fills the flags that were not given on the command line. What was
// chosen for a session that goes on is not chosen again.
func (c config) applyTo(f *sessionFlags, given func(flag string) bool) (err error) {
	if f.resume == "" {
		take(given("sandbox") || given("preset"), &f.sandbox, text(c.Sandbox))
		take(given("sandbox") || given("preset"), &f.preset, c.Preset)
		take(given("approve") || given("approve-via") || given("preset"), &f.approve, text(c.Approve))
		take(given("log"), &f.log, c.Log)
	}
	take(given("approve-via") || given("approve"), &f.approveVia, c.ApproveVia)
	take(given("require-full"), &f.requireFull, c.RequireFull)
	take(given("isolation"), &f.isolation, c.Isolation)
	take(given("timeout"), &f.timeout, c.Timeout)
	take(given("compute"), &f.compute, c.Compute)
	take(given("max-calls"), &f.maxCalls, c.MaxCalls)
	take(given("max-output"), &f.maxOutput, c.MaxOutput)
	take(given("memory"), &f.memory, c.Memory)
	take(given("quiet"), &f.quiet, c.Quiet)
	if chain := c.chain(); !given("backends") {
		f.backends, f.runner = chain.Backends, chain.Runner
	}
	if !given("tools") && c.Tools != nil {
		f.tools = c.Tools
	}
	f.requireDenial = c.RequireDenial != nil && *c.RequireDenial
	f.redact = c.Redact
	f.presets, err = c.presets()
	return err
}

// presets are the built-in ones and those of the file.
func (c config) presets() (*policy.PresetTable, error) {
	var extra []policy.Preset
	for _, p := range c.Presets {
		extra = append(extra, policy.Preset{Name: p.Name, Label: p.Label, Sentence: p.Sentence, Mode: p.Sandbox, Approval: p.Approve})
	}
	table, err := policy.NewPresetTable(extra...)
	if err != nil {
		return nil, usagef("presets: %w", err)
	}
	return table, nil
}

func take[T any](given bool, flag, value *T) {
	if !given && value != nil {
		*flag = *value
	}
}

// text is the word of a knob, as its flag has it.
func text[T fmt.Stringer](value *T) *string {
	if value == nil {
		return nil
	}
	word := (*value).String()
	return &word
}
