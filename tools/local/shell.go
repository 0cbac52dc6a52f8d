package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/sandbox"
	"github.com/dsh-run/dsh/tools"
)

// shell is the program that runs commands, and its words.
type shell struct {
	name string   // of the tool and the program
	args []string // before the command
	long string   // a command that runs the text of its standard input
}

// systemShell is bash, and PowerShell on Windows.
func systemShell() shell {
	if goruntime.GOOS == "windows" {
		return shell{name: "pwsh", args: []string{"-NoProfile", "-NonInteractive", "-Command"}, long: "-"}
	}
	return shell{
		name: "bash", args: []string{"--noprofile", "--norc", "-c"},
		// The words are expanded before the redirection, so the command itself
		// has the null device.
		long: `eval "$(</dev/stdin)" </dev/null`,
	}
}

// maxArgument is the longest argument that every kernel takes, in bytes.
const maxArgument = 128<<10 - 1

// killGrace is the time between TERM and KILL.
const killGrace = 3 * time.Second

// running is a started command. What follows ended may be read once it is
// closed.
type running struct {
	out, err output
	started  time.Time
	withheld []string           // names of variables that it did not get
	by       policy.Confinement // what confines it, as far as that is known before its end

	kill  func(grace time.Duration)
	ended chan struct{}
	end   ending
}

// ending is how a command ended.
type ending struct {
	exitCode    *int // nil when a signal ended it
	signal      string
	leftovers   int // processes that outlived the shell and were ended
	duration    time.Duration
	confinement policy.Confinement
	// broken is why the command never ran, although it was started.
	broken error
}

// process is a started command as the sandbox has it.
type process interface {
	Wait() (sandbox.Report, error)
	Kill(grace time.Duration)
}

// start starts a command in dir. It ends with kill, not with a context: it may
// go on as a job.
func (s *Set) start(ctx context.Context, call *tools.Call, command, dir string) (*running, error) {
	cmd, release, err := s.command(call, command, dir)
	if err != nil {
		return nil, err
	}
	defer release()
	r := &running{started: time.Now(), ended: make(chan struct{})}
	r.place(call)
	cmd.Stdout, cmd.Stderr = &r.out, &r.err
	cmd.Env, r.withheld = environment(os.Environ(), s.options.Environment)
	cmd.Env = append(cmd.Env, s.facts(call, dir)...)
	p, classify, err := s.launch(ctx, call, cmd)
	if err != nil {
		return nil, startFailure(err)
	}
	r.kill = p.Kill
	if r.by, err = classify(nil, 0, 0); err != nil {
		panic("local: a command that has not ended was classified as broken: " + err.Error())
	}
	call.Confine(r.by)
	go r.wait(p, classify)
	return r, nil
}

// place says where the streams that do not fit are saved.
func (r *running) place(call *tools.Call) {
	if call.Session == nil {
		return
	}
	dir := call.Session.Log().SpillDir()
	r.out.file = spillFile{dir: dir, name: call.Tool + "-stdout"}
	r.err.file = spillFile{dir: dir, name: call.Tool + "-stderr"}
}

// command makes the shell's command line. release frees what only the start
// needs.
func (s *Set) command(call *tools.Call, command, dir string) (cmd *exec.Cmd, release func(), err error) {
	sh := systemShell()
	path, err := exec.LookPath(sh.name)
	if err != nil {
		return nil, nil, fail(tools.ToolFailed, "%s was not found in PATH, and the %s tool runs nothing else; install it", sh.name, sh.name)
	}
	if len(command) <= maxArgument {
		return &exec.Cmd{Path: path, Args: append(append([]string{sh.name}, sh.args...), command), Dir: dir}, func() {}, nil
	}
	script, err := unnamedFile(tempDir(call), command)
	if err != nil {
		return nil, nil, fail(tools.ToolFailed, "the command has %d bytes and could not be handed to %s: %s", len(command), sh.name, osReason(err))
	}
	return &exec.Cmd{Path: path, Args: append(append([]string{sh.name}, sh.args...), sh.long), Dir: dir, Stdin: script},
		func() { script.Close() }, nil
}

func tempDir(call *tools.Call) string {
	if call.Session == nil {
		return os.TempDir()
	}
	return call.Session.Log().TempDir()
}

// unnamedFile returns an open file without a name that holds text.
func unnamedFile(dir, text string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "command-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // where an open file must keep its name it stays until the session ends
	_, err = f.WriteString(text)
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// classifier says what confined a command and whether that denied it anything.
// An error means that the sandbox itself failed and the command never ran.
type classifier func(stderr []byte, exit int, sig syscall.Signal) (policy.Confinement, error)

// launch starts cmd in the mode of the call.
func (s *Set) launch(ctx context.Context, call *tools.Call, cmd *exec.Cmd) (process, classifier, error) {
	scope := s.scope(call)
	if scope.Mode == policy.DangerFullAccess {
		tree, err := sandbox.StartTree(cmd)
		return tree, unconfined, err
	}
	p := sandbox.Policy{Scope: scope, RequireFull: s.options.RequireFull, Chain: s.options.Chain}
	if call.Session != nil {
		p.SessionID = call.Session.Log().ID()
	}
	// The command may outlive the call, so its context does not end it.
	confined, err := sandbox.Confine(context.WithoutCancel(ctx), p)
	if err != nil {
		return nil, nil, err
	}
	return confined, confined.Classify, confined.Start(cmd)
}

func unconfined([]byte, int, syscall.Signal) (policy.Confinement, error) {
	return policy.Unconfined(), nil
}

// startFailure is the failure of a call whose command did not run.
func startFailure(err error) error {
	if unavailable := (*sandbox.UnavailableError)(nil); errors.As(err, &unavailable) {
		return fail(tools.SandboxUnavailable, "%v", err)
	}
	return fail(tools.ToolFailed, "the command did not start: %v", err)
}

// wait fills in how the command ended.
func (r *running) wait(p process, classify classifier) {
	report, err := p.Wait()
	r.end.duration, r.end.leftovers = time.Since(r.started), report.Leftovers
	if report.Signal == 0 {
		r.end.exitCode = &report.ExitCode
	} else {
		r.end.signal = signalName(report.Signal)
	}
	r.end.confinement, r.end.broken = classify(r.err.end(), report.ExitCode, report.Signal)
	if unavailable := (*sandbox.UnavailableError)(nil); errors.As(err, &unavailable) {
		r.end.broken = err // other errors are about the exit, which the report has
	}
	r.out.close()
	r.err.close()
	close(r.ended)
}

// workdir is the directory that a command runs in.
func (s *Set) workdir(call *tools.Call, dir string) (string, error) {
	root := s.scope(call).Root
	switch {
	case dir == "":
		return root, nil
	case strings.ContainsRune(dir, 0):
		return "", fail(tools.InvalidArgs, "workdir %q has a NUL byte", dir)
	case !filepath.IsAbs(dir):
		dir = root + string(os.PathSeparator) + dir
	}
	// Links are followed here, since a shell takes "link/.." in PWD by its
	// spelling.
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", osFailure(dir, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", osFailure(dir, err)
	}
	if !info.IsDir() {
		return "", fail(NotDirectory, "workdir %s is not a directory", shownPath(dir))
	}
	return real, nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, many)
}
