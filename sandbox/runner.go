package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dsh-run/dsh/policy"
)

// Runner is a program of the operator's that confines what it is told to run:
// its own arguments come first, the command line follows. It is used only after
// a command run by it was seen to be kept from writing outside.
type Runner struct {
	// Name stands for it in facts and errors. Default: the base name of Argv[0].
	Name string
	// Argv is the runner's command line up to the command. Argv[0] is an
	// absolute path. {mode}, {root}, {temp} and {dir} stand for the call's mode,
	// workspace, temporary directory and working directory; an argument with
	// {writable} is repeated for each directory that may be written.
	Argv []string
	// FailureExits are the exit codes with which it ends when the command never
	// ran. Default: none, so that its failures cannot be told from the
	// command's.
	FailureExits []int
	// FailureLine is a regular expression for the lines that it then writes on
	// stderr. Needed with FailureExits.
	FailureLine string
	// InfoLines are whole lines that it may write at any time and that mean
	// nothing. Default: none.
	InfoLines []string
	// Ungoverned names what it does not govern, as in
	// [policy.Confinement.Reasons]. Default: nil, everything there is a name
	// for, which makes the enforcement partial; empty claims all of it.
	Ungoverned []string
}

func (r *Runner) name() string {
	if r.Name != "" || len(r.Argv) == 0 {
		return r.Name
	}
	return filepath.Base(r.Argv[0])
}

func (r *Runner) check() error {
	switch {
	case len(r.Argv) == 0:
		return &ChainError{"the runner has no argv"}
	case !filepath.IsAbs(r.Argv[0]):
		return &ChainError{fmt.Sprintf("the runner's program is %q; name it by an absolute path, so that it is always the same", r.Argv[0])}
	case (len(r.FailureExits) == 0) != (r.FailureLine == ""):
		return &ChainError{"the runner needs both failure exit codes and a failure line, or neither"}
	}
	if _, err := regexp.Compile(r.FailureLine); err != nil {
		return &ChainError{"the runner's failure line: " + err.Error()}
	}
	for _, name := range r.Ungoverned {
		if !slices.Contains(allReasons, name) {
			return &ChainError{fmt.Sprintf("the runner's %q is nothing that can be ungoverned; there are %s", name, strings.Join(allReasons, ", "))}
		}
	}
	return nil
}

// allReasons is everything that may go ungoverned.
var allReasons = []string{
	policy.MetadataWrites, policy.Truncate, policy.UnixSockets, policy.Network,
	policy.Signals, policy.ProcessView, policy.Orphans, policy.PreexistingHardlinks,
}

// runnerBackend confines with an operator's runner.
type runnerBackend struct{ *Runner }

// runnersSeen are those that were seen to confine, by their command line.
var runnersSeen sync.Map

func (b runnerBackend) key() string             { return strings.Join(b.Argv, "\x00") }
func (b runnerBackend) forget()                 { runnersSeen.Delete(b.key()) }
func (b runnerBackend) known(policy.Scope) bool { _, seen := runnersSeen.Load(b.key()); return seen }
func (b runnerBackend) signature() signature {
	s := signature{exits: b.FailureExits, info: b.InfoLines}
	if b.FailureLine != "" {
		s.line = regexp.MustCompile(b.FailureLine)
	}
	return s
}

func (b runnerBackend) probe(ctx context.Context, _ policy.Scope, limit time.Duration) error {
	if b.known(policy.Scope{}) {
		return nil
	}
	err := tryOutCommand(ctx, b.name(), limit, func(s policy.Scope, roots policy.Roots) restriction {
		return &runnerRestriction{b, s, roots}
	})
	if err == nil {
		runnersSeen.Store(b.key(), true)
	}
	return err
}

func (b runnerBackend) confinement(mode policy.Mode) policy.Confinement {
	c := policy.Confinement{Mode: mode, Backend: b.name(), Enforcement: policy.Full, VCSHooks: policy.HooksEnforced}
	if mode == policy.WorkspaceWrite {
		c.VCSHooks = policy.HooksChecked
	}
	c.Reasons = slices.Clone(b.Ungoverned)
	if b.Ungoverned == nil {
		c.Reasons = slices.Clone(allReasons)
	}
	if len(partialReasons(c)) > 0 {
		c.Enforcement = policy.Partial
	}
	return c
}

func (b runnerBackend) prepare(s policy.Scope, roots policy.Roots) (restriction, error) {
	if err := checkRoot(s.Root); err != nil {
		return nil, err
	}
	s.Mode = max(s.Mode, policy.ReadOnly)
	if reachable(policy.WritableRoots(policy.Scope{Mode: policy.WorkspaceWrite, Root: s.Root, Temp: s.Temp, Extra: s.Extra}), resolvePath("/", b.Argv[0])) {
		return nil, fmt.Errorf("%s lies where commands may write, so that it may be anything; install it elsewhere", b.Argv[0])
	}
	return &runnerRestriction{b, s, roots}, nil
}

type runnerRestriction struct {
	runner runnerBackend
	scope  policy.Scope
	roots  policy.Roots
}

func (r *runnerRestriction) start(cmd *exec.Cmd) (inner, error) {
	argv, _ := r.argv(append([]string{absoluteProgram(cmd)}, cmd.Args[min(1, len(cmd.Args)):]...), workingDirectory(cmd))
	cmd.Path, cmd.Args = argv[0], argv
	if err := cmd.Start(); err != nil {
		return nil, &setupError{"start " + argv[0], err}
	}
	return nil, nil
}

func (r *runnerRestriction) argv(argv []string, dir string) ([]string, bool) {
	fill := strings.NewReplacer("{mode}", r.scope.Mode.String(), "{root}", r.scope.Root, "{temp}", r.scope.Temp, "{dir}", dir)
	var all []string
	for _, arg := range r.runner.Argv {
		if !strings.Contains(arg, "{writable}") {
			all = append(all, fill.Replace(arg))
			continue
		}
		for _, dir := range r.roots.Dirs {
			if _, err := os.Stat(dir); err == nil {
				all = append(all, strings.ReplaceAll(fill.Replace(arg), "{writable}", dir))
			}
		}
	}
	return append(all, argv...), true
}

func (r *runnerRestriction) denials() denials { return denials{access: true, readOnly: true} }

func (r *runnerRestriction) failure(stderr []byte, exit int, sig syscall.Signal) error {
	return r.runner.signature().failure(stderr, exit, sig)
}

// reachable reports whether path lies in a directory that commands may change.
func reachable(roots policy.Roots, path string) bool {
	return slices.ContainsFunc(roots.Dirs, func(dir string) bool { return dir != "" && policy.Within(dir, path) })
}
