package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/sandbox"
)

// starts compares a confined command with an unconfined one.
func starts(_ context.Context, base string) (group, error) {
	root, temp := filepath.Join(base, "work"), filepath.Join(base, "temp")
	for _, dir := range []string{root, temp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return group{}, err
		}
	}
	root, err := policy.Canonical(root)
	if err != nil {
		return group{}, err
	}
	scope := func(mode policy.Mode) policy.Scope { return policy.Scope{Mode: mode, Root: root, Temp: temp} }
	return group{name: "start and end of bash -c true", rows: []row{
		{"os/exec, nothing confined", timed(func(context.Context) error { return exec.Command("bash", "-c", "true").Run() })},
		{"confined, read-only", timed(func(ctx context.Context) error { return confined(ctx, scope(policy.ReadOnly)) })},
		{"confined, workspace-write", timed(func(ctx context.Context) error { return confined(ctx, scope(policy.WorkspaceWrite)) })},
	}}, nil
}

func timed(f func(context.Context) error) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		begun := time.Now()
		err := f(ctx)
		return time.Since(begun), err
	}
}

func confined(ctx context.Context, scope policy.Scope) error {
	c, err := sandbox.Confine(ctx, sandbox.Policy{Scope: scope})
	if err != nil {
		return err
	}
	if err := c.Start(exec.Command("bash", "-c", "true")); err != nil {
		return err
	}
	_, err = c.Wait()
	return err
}
