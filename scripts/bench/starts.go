package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/sandbox"
)

//go:embed launcher.c.txt
var launcherSource string

// startPlace is where commands are started: outside of a repository, and in
// one.
type startPlace struct{ root, repository, temp string }

func newStartPlace(base string) (p startPlace, err error) {
	base, err = policy.Canonical(base)
	if err != nil {
		return p, err
	}
	p = startPlace{filepath.Join(base, "work"), filepath.Join(base, "repository"), filepath.Join(base, "temp")}
	for _, dir := range []string{p.root, p.repository, p.temp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return p, err
		}
	}
	if out, err := exec.Command("git", "init", "-q", p.repository).CombinedOutput(); err != nil {
		return p, fmt.Errorf("git init: %w: %s", err, out)
	}
	return p, nil
}

// policyFor confines by one backend.
func (p startPlace) policyFor(backend string, mode policy.Mode, root string) sandbox.Policy {
	return sandbox.Policy{Scope: policy.Scope{Mode: mode, Root: root, Temp: p.temp}, Chain: sandbox.Chain{Backends: []string{backend}}}
}

// starts compares a confined command with an unconfined one.
func starts(ctx context.Context, base string) (group, error) {
	p, err := newStartPlace(base)
	if err != nil {
		return group{}, err
	}
	g := group{name: "start and end of bash -c true", rows: []row{
		{"os/exec, nothing confined", timed(func(context.Context) error { return exec.Command("bash", "-c", "true").Run() })},
	}}
	for _, backend := range working(ctx, p.root) {
		g.rows = append(g.rows,
			row{backend + ", read-only", timed(func(ctx context.Context) error {
				return confined(ctx, p.policyFor(backend, policy.ReadOnly, p.root), "true")
			})},
			row{backend + ", workspace-write, in a repository with its check", timed(func(ctx context.Context) error {
				return confined(ctx, p.policyFor(backend, policy.WorkspaceWrite, p.repository), "true")
			})})
	}
	launcher, err := buildLauncher(base)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: no row for the C launcher:", err)
		return g, nil
	}
	g.rows = append(g.rows, row{"a launcher in C, read-only without a filter", timed(func(context.Context) error {
		return exec.Command(launcher, p.temp, "bash", "-c", "true").Run()
	})})
	return g, nil
}

// buildLauncher compiles the launcher in C.
func buildLauncher(base string) (string, error) {
	source, binary := filepath.Join(base, "launcher.c"), filepath.Join(base, "launcher")
	if err := os.WriteFile(source, []byte(launcherSource), 0o600); err != nil {
		return "", err
	}
	if out, err := exec.Command("cc", "-O2", "-o", binary, source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cc: %w: %s", err, out)
	}
	return binary, nil
}

// working are the backends that work here, the one that is not bubblewrap
// first.
func working(ctx context.Context, root string) []string {
	var names []string
	for _, b := range sandbox.Probe(ctx, root).Backends {
		if b.Works {
			names = append(names, b.Name)
		}
	}
	slices.Reverse(names)
	return names
}

// manyFiles is how many files the reading rows read.
const manyFiles = 16_000

// reading compares reading many files.
func reading(ctx context.Context, base string) (group, error) {
	p, err := newStartPlace(base)
	if err != nil {
		return group{}, err
	}
	tree := filepath.Join(p.root, "tree")
	for i := range manyFiles {
		dir := filepath.Join(tree, fmt.Sprint(i/200))
		if i%200 == 0 {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return group{}, err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte("some text\n"), 0o600); err != nil {
			return group{}, err
		}
	}
	script := "grep -r nothing " + tree + "; true"
	g := group{name: fmt.Sprintf("reading %d files with grep -r", manyFiles), share: 0.1, rows: []row{
		{"os/exec, nothing confined", timed(func(context.Context) error { return exec.Command("bash", "-c", script).Run() })},
	}}
	for _, backend := range working(ctx, p.root) {
		g.rows = append(g.rows, row{backend + ", read-only", timed(func(ctx context.Context) error {
			return confined(ctx, p.policyFor(backend, policy.ReadOnly, p.root), script)
		})})
	}
	return g, nil
}

func timed(f func(context.Context) error) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		begun := time.Now()
		err := f(ctx)
		return time.Since(begun), err
	}
}

func confined(ctx context.Context, p sandbox.Policy, script string) error {
	c, err := sandbox.Confine(ctx, p)
	if err != nil {
		return err
	}
	if err := c.Start(exec.Command("bash", "-c", script)); err != nil {
		return err
	}
	_, err = c.Wait()
	return err
}
