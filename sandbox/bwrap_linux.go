//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
)

// bwrapBackend confines with bubblewrap: a mount namespace in which everything
// is read-only but the writable roots, and a process namespace that ends with
// the command.
type bwrapBackend struct {
	mu       sync.Mutex // held while probing
	verdicts map[program]bwrapVerdict
}

// bwrapVerdict is what a probe of one binary found.
type bwrapVerdict struct {
	err error
	at  time.Time
}

// failureCounts is how long a probe that failed counts. What makes bubblewrap
// fail is how the machine is set up, which rarely changes, and a probe costs as
// much as a command.
const failureCounts = 30 * time.Second

func (*bwrapBackend) name() string { return "bwrap" }

func (b *bwrapBackend) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.verdicts = nil
}

func (b *bwrapBackend) known(s policy.Scope) bool {
	p, err := findBwrap(s)
	if err != nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	v, found := b.verdicts[p]
	return found && v.err == nil
}

func (b *bwrapBackend) probe(ctx context.Context, s policy.Scope, limit time.Duration) error {
	p, err := findBwrap(s)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if v, found := b.verdicts[p]; found && (v.err == nil || time.Since(v.at) < failureCounts) {
		return v.err
	}
	err = tryOutCommand(ctx, b.name(), limit, func(s policy.Scope, roots policy.Roots) restriction {
		return &bwrapRestriction{path: p.path, scope: s, roots: roots}
	})
	if isSlow(err) || ctx.Err() != nil {
		return err
	}
	if err != nil && strings.Contains(err.Error(), "amespace") {
		err = fmt.Errorf("%w. To get it, allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces, "+
			"kernel.apparmor_restrict_unprivileged_userns), or, in a container, the calls clone, unshare and mount in its seccomp profile", err)
	}
	if b.verdicts == nil || len(b.verdicts) > mostPrograms {
		b.verdicts = map[program]bwrapVerdict{}
	}
	b.verdicts[p] = bwrapVerdict{err, time.Now()}
	return err
}

// mostPrograms bounds the verdicts that are kept: there is one for each version
// of each binary.
const mostPrograms = 16

func (*bwrapBackend) confinement(mode policy.Mode) policy.Confinement {
	c := policy.Confinement{Mode: mode, Backend: "bwrap", Enforcement: policy.Full, VCSHooks: policy.HooksEnforced,
		Reasons: []string{policy.UnixSockets, policy.Network}}
	if mode == policy.WorkspaceWrite {
		c.VCSHooks = policy.HooksChecked
		c.Reasons = append(c.Reasons, policy.PreexistingHardlinks)
	}
	return c
}

func (b *bwrapBackend) prepare(s policy.Scope, roots policy.Roots) (restriction, error) {
	p, err := findBwrap(s)
	if err != nil {
		return nil, err
	}
	if err := checkRoot(s.Root); err != nil {
		return nil, err
	}
	for _, dir := range append([]string{s.Temp}, s.Extra...) {
		if err := checkNoLink(dir); err != nil {
			return nil, err
		}
	}
	return &bwrapRestriction{path: p.path, scope: s, roots: roots}, nil
}

// checkNoLink refuses a directory of the call in whose place a link stands: it
// would be the work of an earlier command.
func checkNoLink(dir string) error {
	if dir == "" {
		return nil
	}
	if _, err := os.Lstat(dir); err != nil {
		return nil // it is not there, and nothing will be granted
	}
	if real := resolvePath("/", dir); real != dir {
		return &policy.RootError{Root: dir, Reason: fmt.Sprintf("a link leads from it to %q; name that directory itself", real)}
	}
	return nil
}

// bwrapRestriction is the namespaces of one call.
type bwrapRestriction struct {
	path  string
	scope policy.Scope
	roots policy.Roots
}

func (r *bwrapRestriction) denials() denials {
	asRoot := os.Geteuid() == 0
	return denials{readOnly: true, crossDevice: true, busy: true, protected: true, privileges: asRoot, access: asRoot, permission: asRoot}
}

// The descriptors that the runner gets besides the streams.
const (
	statusFD = 3 + iota
	argsFD
	filterFD
)

// start starts the runner from a thread that stays, since the runner ends when
// the thread that started it does.
func (r *bwrapRestriction) start(cmd *exec.Cmd) (inner, error) {
	if err := checkExecutable(absoluteProgram(cmd)); err != nil {
		return nil, err
	}
	status, err := openStatus()
	if err != nil {
		return nil, &setupError{"bwrap: make its status pipe", err}
	}
	files, err := r.dress(cmd, status.write)
	defer closeAll(files)
	if err != nil {
		status.read.Close()
		return nil, err
	}
	learnPidfd()
	if err := onStayingThread(cmd.Start); err != nil {
		status.read.Close()
		return nil, &setupError{"start " + r.path, err}
	}
	go status.follow()
	return status, nil
}

// dress makes cmd the runner with cmd inside, and returns the files that are to
// be closed after the start.
func (r *bwrapRestriction) dress(cmd *exec.Cmd, status *os.File) ([]*os.File, error) {
	files := []*os.File{status}
	env := cmd.Environ()
	clean, kept := runnerEnvironment(env)
	argv := append([]string{programName(cmd, env)}, cmd.Args[min(1, len(cmd.Args)):]...)
	options := append(r.options(workingDirectory(cmd)), kept...)
	for _, content := range []struct {
		what string
		data []byte
	}{{"arguments", joinNUL(options)}, {"filter", rawFilter(filterFor(policy.WorkspaceWrite))}} {
		f, err := memoryFile(content.what, content.data)
		if err != nil {
			return files, &setupError{"bwrap: hand over its " + content.what, err}
		}
		files = append(files, f)
	}
	cmd.Path, cmd.Env = r.path, clean
	cmd.Args = append([]string{"bwrap", "--args", fmt.Sprint(argsFD), "--"}, argv...)
	cmd.ExtraFiles = append(slices.Clone(files), cmd.ExtraFiles[min(len(files), len(cmd.ExtraFiles)):]...)
	cmd.SysProcAttr.Pdeathsig = unix.SIGKILL
	return files, nil
}

// argv is the form without a status descriptor. What happened to the runner is
// then read from its exit code and words.
func (r *bwrapRestriction) argv(argv []string, dir string) ([]string, bool) {
	return slices.Concat([]string{r.path}, r.profile(dir), []string{"--"}, argv), true
}

// failure recognises the runner's own complaint, with which it exits 1 before
// the command runs. That it cannot enter the directory or execute the program
// is the caller's mistake, as it would be outside.
func (r *bwrapRestriction) failure(stderr []byte, exit int, sig syscall.Signal) error {
	return signature{exits: []int{1}, line: bwrapComplaint, callers: bwrapStartError}.failure(stderr, exit, sig)
}

// options are the profile and what only our own start can give.
func (r *bwrapRestriction) options(dir string) []string {
	return append(r.profile(dir), "--json-status-fd", fmt.Sprint(statusFD), "--seccomp", fmt.Sprint(filterFD))
}

// checkExecutable returns the error that executing the file at path would end
// with, as far as it can be told before: the runner could only say that it
// failed.
func checkExecutable(path string) error {
	failed := func(errno unix.Errno) error { return &fs.PathError{Op: "fork/exec", Path: path, Err: errno} }
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return &fs.PathError{Op: "fork/exec", Path: path, Err: unwrapPath(err)}
	case !info.Mode().IsRegular() || unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) != nil:
		return failed(unix.EACCES)
	}
	if interpreter := interpreterOf(path); interpreter != "" {
		switch err := unix.Faccessat(unix.AT_FDCWD, interpreter, unix.X_OK, unix.AT_EACCESS); err {
		case unix.ENOENT, unix.ENOTDIR, unix.EACCES:
			return failed(err.(unix.Errno))
		}
	}
	return nil
}

// interpreterOf is the program that the first line of a script names, or "".
func interpreterOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	head := make([]byte, 256) // as much as the kernel reads
	n, _ := io.ReadFull(file, head)
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	words, script := bytes.CutPrefix(line, []byte("#!"))
	if fields := bytes.Fields(words); script && len(fields) > 0 {
		return string(fields[0])
	}
	return ""
}
