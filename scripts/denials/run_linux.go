package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/sandbox"
)

// place is where one command runs: made anew for each.
type place struct{ base, root, out, temp, home string }

// setup makes what the commands work on.
const setup = `set -e
mkdir ws out tmp home; mkdir -p home/.config/go; mkdir ws/d ws/repo ws/readonly ws/mod ws/np ws/pkg out/dir out/empty
cd ws
echo inside > f; echo x > d/x; echo '#!/bin/sh' > script.sh; chmod 644 script.sh
echo secret > secret.txt; chmod 000 secret.txt; echo r > readonly.txt; chmod 444 readonly.txt; chmod 555 readonly
echo 'x = 1' > m.py
printf 'out:\n\techo x > $(OUT)/made\nin:\n\techo x > made\nfail:\n\tfalse\n' > Makefile
printf 'module x\n\ngo 1.21\n' > mod/go.mod; printf 'package main\n\nfunc main() {}\n' > mod/main.go
echo '{"name":"np","version":"1.0.0"}' > np/package.json
printf '[project]\nname = "p"\nversion = "1"\n' > pkg/pyproject.toml
echo 'int main(void) { return 0; }' > c.c
tar cf a.tar d
printf -- '--- a\n+++ b\n@@ -1 +1 @@\n-outside\n+y\n' > p.diff
cd repo; git init -q -b main .; git config user.name n; git config user.email e@x; echo a > a.txt; git add .; git commit -qm one; cd ..
echo outside > ../out/vic; echo y > ../out/dir/y; printf 'package x\nfunc  f( ) {}\n' > ../out/x.go
git init -q --bare ../out/bare; command -v sqlite3 > /dev/null && sqlite3 ../out/there.db 'create table t(x)'
true`

func newPlace() (place, error) {
	base, err := os.MkdirTemp(os.Getenv("HOME"), "p-")
	if err != nil {
		return place{}, err
	}
	p := place{base, base + "/ws", base + "/out", base + "/tmp", base + "/home"}
	cmd := exec.Command("bash", "-c", setup)
	cmd.Dir, cmd.Env = base, p.environment("C")
	if out, err := cmd.CombinedOutput(); err != nil {
		return p, fmt.Errorf("make a place: %w: %s", err, out)
	}
	return p, nil
}

func (p place) remove() {
	_ = filepath.WalkDir(p.base, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(p.base)
}

func (p place) environment(locale string) []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "TMPDIR=" + p.temp, "WS=" + p.root, "OUT=" + p.out, "LC_ALL=" + locale, "LANGUAGE=",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z", "GIT_TERMINAL_PROMPT=0", "PAGER=cat", "TERM=dumb", "NO_UPDATE_NOTIFIER=1", "npm_config_offline=true",
		"npm_config_cache=" + p.temp + "/npm", "PIP_NO_CACHE_DIR=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "GOCACHE=" + p.temp + "/gocache", "GOTOOLCHAIN=local",
		"GOPROXY=off", "GOTELEMETRY=off",
	}
}

func (p place) command(command, locale string) *exec.Cmd {
	cmd := exec.Command("bash", "-c", strings.TrimPrefix(command, "! "))
	cmd.Dir, cmd.Env = p.root, p.environment(locale)
	return cmd
}

// normal replaces what differs from place to place.
func (p place) normal(text string) string {
	return strings.NewReplacer(p.root, "$WS", p.out, "$OUT", p.temp, "$TMP", p.home, "$HOME", p.base, "$BASE").Replace(text)
}

// files describes what a command may leave: names and modes, without what
// differs from run to run.
func (p place) files() string {
	var text strings.Builder
	for _, dir := range []string{p.root, p.out, p.home} {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if name := d.Name(); name == "objects" || name == ".gc" || name == "gc" || name == "logs" || name == "__pycache__" || name == "telemetry" {
				return fs.SkipDir
			}
			info, err := d.Info()
			if err != nil || strings.HasPrefix(d.Name(), "tmp") {
				return nil
			}
			content := ""
			if info.Mode().IsRegular() && info.Size() < 100 {
				data, _ := os.ReadFile(path)
				content = string(data)
			}
			fmt.Fprintf(&text, "%s %v %q\n", p.normal(path), info.Mode(), content)
			return nil
		})
	}
	return text.String()
}

// outcome is how a command ended.
type outcome struct {
	exit   int
	signal syscall.Signal
	stderr string
	files  string
	seen   policy.Confinement
}

// runAll writes a row for every command, backend, mode and locale.
func runAll(only string, to io.Writer) error {
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	user := "root"
	if os.Getuid() != 0 {
		user = "user"
	}
	list := commands(only)
	found := make([][]row, len(list))
	errs := make([]error, len(list))
	var group sync.WaitGroup
	next := make(chan int)
	for range goruntime.NumCPU() {
		group.Go(func() {
			for i := range next {
				found[i], errs[i] = runEverywhere(list[i], user)
			}
		})
	}
	for i := range list {
		next <- i
	}
	close(next)
	group.Wait()
	for i := range list {
		for _, r := range found[i] {
			errs = append(errs, enc.Encode(r))
		}
		if errs[i] != nil {
			return fmt.Errorf("%s: %w", list[i], errs[i])
		}
	}
	return errors.Join(errs...)
}

// runEverywhere runs one command in all ways.
func runEverywhere(command, user string) ([]row, error) {
	free, err := run(command, "C", nil)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, backend := range sandbox.Backends() {
		for _, mode := range []policy.Mode{policy.ReadOnly, policy.WorkspaceWrite} {
			for _, locale := range localesFor(backend, mode) {
				got, err := run(command, locale, func(p place) sandbox.Policy {
					return sandbox.Policy{Scope: policy.Scope{Mode: mode, Root: p.root, Temp: p.temp}, Chain: sandbox.Chain{Backends: []string{backend}}}
				})
				if err != nil {
					return nil, err
				}
				rows = append(rows, row{Command: command, Backend: backend, Mode: mode.String(), User: user, Locale: locale, Exit: got.exit, Signal: int(got.signal),
					Stderr: got.stderr, Denied: wasDenied(command, got, free), Said: got.seen.Denied, Confidence: string(got.seen.Confidence), Path: got.seen.Path})
			}
		}
	}
	return rows, nil
}

// localesFor spreads the other language over backends and modes.
func localesFor(backend string, mode policy.Mode) []string {
	if (backend == "bwrap") == (mode == policy.ReadOnly) {
		return []string{"C", "de_DE.UTF-8"}
	}
	return []string{"C"}
}

// wasDenied is the label. A command that hides its failure left other files.
func wasDenied(command string, confined, free outcome) bool {
	switch {
	case strings.HasPrefix(command, "! "):
		return false
	case confined.exit != 0 || confined.signal != 0:
		return free.exit == 0 && free.signal == 0
	}
	return free.exit == 0 && confined.files != free.files
}

const longest = 60 * time.Second

// run runs a command in a new place, confined by a policy or not at all.
func run(command, locale string, confine func(place) sandbox.Policy) (o outcome, err error) {
	p, err := newPlace()
	defer p.remove()
	if err != nil {
		return o, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	var stderr bytes.Buffer
	cmd := p.command(command, locale)
	cmd.Stderr = &stderr
	if confine == nil {
		tree, err := sandbox.StartTree(cmd)
		if err != nil {
			return o, err
		}
		defer context.AfterFunc(ctx, func() { tree.Kill(0) })()
		report, _ := tree.Wait()
		return outcome{exit: report.ExitCode, signal: report.Signal, stderr: p.normal(stderr.String()), files: p.files()}, nil
	}
	confined, err := sandbox.Confine(ctx, confine(p))
	if err == nil {
		err = confined.Start(cmd)
	}
	if err != nil {
		return o, err
	}
	report, _ := confined.Wait()
	o = outcome{exit: report.ExitCode, signal: report.Signal, stderr: p.normal(stderr.String())}
	if o.seen, err = confined.Classify(stderr.Bytes(), report.ExitCode, report.Signal); err != nil {
		return o, err
	}
	o.seen.Path = p.normal(o.seen.Path)
	o.files = p.files()
	return o, nil
}
