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
	// workspace, temporary directory and working directory. An argument with
	// {writable} is repeated for each directory that may be written, the
	// temporary one included, and one with {device} for each device; so a flag
	// and its value are one argument, as in --rw={writable}.
	Argv []string
	// FailureExits are the exit codes with which it ends when the command never
	// ran. Default: none, so that its failures cannot be told from the
	// command's.
	FailureExits []int
	// FailureLine is a regular expression for the lines that it then writes on
	// stderr. Needed with FailureExits.
	FailureLine string
	// InfoLines are whole lines that it may write at any time and that mean
	// nothing. Default: none; LaunchNotice is always one.
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
	s := signature{exits: b.FailureExits, info: append(slices.Clone(b.InfoLines), LaunchNotice)}
	if b.FailureLine != "" {
		s.line = regexp.MustCompile(b.FailureLine)
	}
	return s
}

func (b runnerBackend) probe(ctx context.Context, s policy.Scope, limit time.Duration) error {
	if err := b.checkPlace(s); err != nil {
		return err // before it is executed, unconfined
	}
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
	if err := b.checkPlace(s); err != nil {
		return nil, err
	}
	return &runnerRestriction{b, s, roots}, nil
}

// checkPlace refuses a runner that is not there, or that a command could have put there, in this
// call's mode or another.
func (b runnerBackend) checkPlace(s policy.Scope) error {
	if _, err := os.Stat(b.Argv[0]); err != nil {
		return fmt.Errorf("the runner's program cannot be used: %w; install it, or name another one", err)
	}
	roots := policy.WritableRoots(policy.Scope{Mode: policy.WorkspaceWrite, Root: s.Root, Temp: s.Temp, Extra: s.Extra})
	if reachable(roots, b.Argv[0]) || reachable(roots, resolvePath("/", b.Argv[0])) {
		return fmt.Errorf("%s lies where commands may write, so that it may be anything; install it elsewhere", b.Argv[0])
	}
	return nil
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
	words := []string{"{mode}", r.scope.Mode.String(), "{root}", r.scope.Root, "{temp}", r.scope.Temp, "{dir}", dir}
	var all []string
	for _, arg := range r.runner.Argv {
		switch {
		case strings.Contains(arg, "{writable}"):
			all = append(all, repeated(arg, "{writable}", r.roots.Dirs, words)...)
		case strings.Contains(arg, "{device}"):
			all = append(all, repeated(arg, "{device}", r.roots.Devices, words)...)
		default:
			all = append(all, strings.NewReplacer(words...).Replace(arg))
		}
	}
	return append(all, argv...), true
}

// repeated is an argument once for each path that is there. All is replaced at
// one time: a path may read like a placeholder.
func repeated(arg, placeholder string, paths, words []string) []string {
	var all []string
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			all = append(all, strings.NewReplacer(append(slices.Clone(words), placeholder, path)...).Replace(arg))
		}
	}
	return all
}

func (r *runnerRestriction) denials() denials { return denials{access: true, readOnly: true} }

func (r *runnerRestriction) failure(stderr []byte, exit int, sig syscall.Signal) error {
	return r.runner.signature().failure(stderr, exit, sig)
}

// reachable reports whether path lies in a directory that commands may change.
func reachable(roots policy.Roots, path string) bool {
	return slices.ContainsFunc(roots.Dirs, func(dir string) bool { return dir != "" && policy.Within(dir, path) })
}
