package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dsh-run/dsh/policy"
)

// tryScript succeeds in what is allowed and must fail in what is not. It prints
// a word for what it could do although it must not.
const tryScript = `: >"$1/in/made" || echo allowed-refused
: >/dev/null || echo null-refused
(: >"$1/made") 2>/dev/null && echo created
(: >"$1/there") 2>/dev/null && echo truncated
echo tried
`

// tryOutCommand runs a command by a backend that starts programs, in read-only
// with one writable directory, and says what went wrong.
func tryOutCommand(ctx context.Context, name string, limit time.Duration, restrict func(policy.Scope, policy.Roots) restriction) error {
	made, err := os.MkdirTemp("", "dsh-probe-")
	if err != nil {
		return fmt.Errorf("%s cannot be tried out without a temporary directory: %w", name, err)
	}
	defer os.RemoveAll(made)
	dir, err := filepath.EvalSymlinks(made)
	if err == nil {
		err = errors.Join(os.Mkdir(filepath.Join(dir, "in"), 0o700), os.WriteFile(filepath.Join(dir, "there"), []byte("kept"), 0o600))
	}
	if err != nil {
		return fmt.Errorf("%s cannot be tried out: %w", name, err)
	}
	s := policy.Scope{Root: dir, Temp: filepath.Join(dir, "in")}
	return tryIn(ctx, name, limit, dir, restrict(s, policy.WritableRoots(s)))
}

func tryIn(ctx context.Context, name string, limit time.Duration, dir string, r restriction) error {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return fmt.Errorf("%s cannot be tried out without sh in PATH", name)
	}
	var stdout, stderr bytes.Buffer
	cmd := &exec.Cmd{Path: shell, Args: []string{"sh", "-c", tryScript, "sh", dir}, Dir: dir, Stdout: &stdout, Stderr: &stderr}
	tree, err := startTree(cmd, r.start)
	if err != nil {
		return fmt.Errorf("%s was tried out and did not start: %w", name, err)
	}
	slow := time.AfterFunc(limit, func() { tree.Kill(0) })
	defer context.AfterFunc(ctx, func() { tree.Kill(0) })()
	report, broken := tree.Wait()
	switch {
	case !slow.Stop():
		return &slowProbeError{limit}
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return judgeTry(name, dir, stdout.String(), strings.TrimSpace(stderr.String()), report, broken)
}

// judgeTry believes the file system more than the command.
func judgeTry(name, dir, said, words string, report Report, broken error) error {
	kept, err := os.ReadFile(filepath.Join(dir, "there"))
	switch {
	case exists(filepath.Join(dir, "made")) || err != nil || string(kept) != "kept":
		return fmt.Errorf("%s was tried out and does not confine: a command changed a file outside of the writable directories", name)
	case report.ExitCode == 0 && said == "tried\n" && exists(filepath.Join(dir, "in", "made")):
		return nil
	case words != "":
		return fmt.Errorf("%s was tried out and failed: %s", name, words)
	case broken != nil:
		return fmt.Errorf("%s was tried out and failed: %w", name, broken)
	default:
		return fmt.Errorf("%s was tried out and failed: exit code %d, output %q", name, report.ExitCode, said)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
