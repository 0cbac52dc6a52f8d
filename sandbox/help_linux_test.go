//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session/sessiontest"
)

// needKernel skips where the kernel cannot confine.
func needKernel(t testing.TB) {
	t.Helper()
	_, err := probeLandlock()
	sessiontest.Need(t, "kernel", err == nil, fmt.Sprint(err))
}

// onBackends runs a test for every backend of this platform.
func onBackends(t *testing.T, test func(t *testing.T, by string)) {
	for _, b := range installed {
		t.Run(b.name(), func(t *testing.T) {
			needBackend(t, b.name())
			test(t, b.name())
		})
	}
}

// needBackend skips where a backend does not work.
func needBackend(t testing.TB, name string) {
	t.Helper()
	for _, b := range installed {
		if b.name() == name {
			err := b.probe(t.Context(), policy.Scope{Root: "/nowhere"}, patient)
			sessiontest.Need(t, map[string]string{"bwrap": "bwrap", "landlock": "kernel"}[name], err == nil, fmt.Sprint(err))
		}
	}
}

// needProgram skips where a program is missing.
func needProgram(t testing.TB, name string) {
	t.Helper()
	_, err := exec.LookPath(name)
	sessiontest.Need(t, name, err == nil, fmt.Sprint(err))
}

// place is a workspace, a session's temporary directory, and a directory that
// no mode allows: it lies outside of /tmp.
type place struct{ root, temp, out string }

func newPlace(t testing.TB) place {
	t.Helper()
	made, err := os.MkdirTemp("/var/tmp", "dsh-sandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(made) })
	base, err := filepath.EvalSymlinks(made)
	if err != nil {
		t.Fatal(err)
	}
	p := place{filepath.Join(base, "ws"), filepath.Join(base, "tmp"), filepath.Join(base, "out")}
	for _, dir := range []string{p.root, p.temp, p.out, p.out + "/empty"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, p.root+"/f", "inside")
	write(t, p.out+"/victim", "outside")
	return p
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p place) policy(mode policy.Mode) Policy {
	return p.policyBy("landlock", mode)
}

func (p place) policyBy(backend string, mode policy.Mode) Policy {
	return Policy{Scope: policy.Scope{Mode: mode, Root: p.root, Temp: p.temp}, Chain: Chain{Backends: []string{backend}}}
}

// bash is a command in the workspace that knows the place and speaks English.
func (p place) bash(script string) *exec.Cmd {
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = p.root
	cmd.Env = append(os.Environ(), "OUT="+p.out, "WS="+p.root, "TMPDIR="+p.temp, "HOME="+p.out, "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1")
	return cmd
}

// ended is what is known of a command that was run confined.
type ended struct {
	exit           int
	signal         syscall.Signal
	stdout, stderr string
	report         Report
	confined       *Confined
}

func (e ended) classify() policy.Confinement {
	c, err := e.confined.Classify([]byte(e.stderr), e.exit, e.signal)
	if err != nil {
		panic(err)
	}
	return c
}

func (e ended) String() string {
	return fmt.Sprintf("exit %d, signal %d, stdout %q, stderr %q", e.exit, e.signal, e.stdout, e.stderr)
}

// confine returns a confinement that ends with the test.
func confine(t testing.TB, p Policy) *Confined {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // only a hang takes so long
	t.Cleanup(cancel)
	c, err := Confine(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// runConfined runs cmd to its end.
func runConfined(t testing.TB, p Policy, cmd *exec.Cmd) ended {
	t.Helper()
	c := confine(t, p)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := c.Start(cmd); err != nil {
		t.Fatalf("start %q: %v", cmd.Args, err)
	}
	report, err := c.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("wait for %q: %v", cmd.Args, err)
	}
	return ended{exit: report.ExitCode, signal: report.Signal, stdout: stdout.String(), stderr: stderr.String(), report: report, confined: c}
}

// treeOf describes all that can be changed below dir: names, kinds, modes,
// times and contents.
func treeOf(t testing.TB, dir string) string {
	t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var content []byte
		if info.Mode().IsRegular() {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		st := info.Sys().(*syscall.Stat_t)
		fmt.Fprintf(&text, "%s %v %d:%d %d links %v %q\n", path, info.Mode(), st.Uid, st.Gid, st.Nlink, info.ModTime().UnixNano(), content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// hostIsFree looks at every thread of this process for traces of a
// confinement. A restricted thread may still be on its way out.
func hostIsFree(t *testing.T) {
	t.Helper()
	restricted := func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && (!bytes.Contains(text, []byte("NoNewPrivs:\t0")) || !bytes.Contains(text, []byte("Seccomp:\t0")))
	}
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(files) == 0 {
		t.Fatalf("no threads found: %v", err)
	}
	for _, file := range files {
		for end := time.Now().Add(10 * time.Second); restricted(file); goruntime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("%s: no_new_privs or a system call filter is still set", file)
			}
		}
	}
}

// names of errors as the helpers report them.
func errnoName(err error) string {
	var errno unix.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

var atCWD = func() uintptr { cwd := unix.AT_FDCWD; return uintptr(cwd) }()

func cString(text string) uintptr {
	b, _ := unix.BytePtrFromString(text)
	cStrings = append(cStrings, b)
	return uintptr(unsafe.Pointer(b))
}

// cStrings keeps what system calls point to.
var cStrings []*byte

// try makes a system call and names its error.
func try(call uintptr, args ...uintptr) string {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := unix.RawSyscall6(call, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno == 0 {
		return "ok"
	}
	return unix.ErrnoName(errno)
}

// noCompat is the outcome where the kernel has no 32-bit entry to step through.
const noCompat = "no 32-bit entry"

// prepareCompat returns a function that calls getpid of the i386 table through
// int 0x80 and names its error. The machine code is mapped before.
func prepareCompat() func() string {
	if goruntime.GOARCH != "amd64" {
		return func() string { return "EPERM" } // there is no such way
	}
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return func() string { return err.Error() }
	}
	copy(page, []byte{
		0xb8, 20, 0, 0, 0, // mov eax, 20: getpid
		0xcd, 0x80, // int 0x80
		0xc3, // ret
	})
	if err := unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		return func() string { return err.Error() }
	}
	return func() (name string) {
		// A kernel without this entry answers with a fault.
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if recover() != nil {
				name = noCompat
			}
		}()
		code := &page[0]
		entry := &code
		call := *(*func() uint32)(unsafe.Pointer(&entry))
		if got := int32(call()); got < 0 {
			return unix.ErrnoName(unix.Errno(-got))
		}
		return "ok"
	}
}
