//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/session/sessiontest"
)

const sealTestEnv = "DSH_SANDBOX_SEAL_TEST"

// The re-executed test binary reports what it could do as JSON on stdout.
func init() {
	stage := os.Getenv(sealTestEnv)
	if stage == "" {
		return
	}
	report := map[string]string{}
	if stage == "locked" {
		crowd := sealCrowd()
		if err := LockDown(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		report["a thread from before"] = crowd()
		maps.Copy(report, sealForbidden())
		maps.Copy(report, sealWorks())
	} else {
		maps.Copy(report, sealFiles())
	}
	text, _ := json.Marshal(report)
	fmt.Println(string(text))
	os.Exit(0)
}

// sealCrowd keeps a second thread alive and returns what it can still open.
func sealCrowd() func() string {
	ask, answer := make(chan struct{}), make(chan string)
	locked := make(chan struct{})
	go func() {
		goruntime.LockOSThread()
		close(locked)
		<-ask
		answer <- sealTry(unix.SYS_OPENAT, sealCWD, sealPath("/proc/self/exe"), unix.O_RDONLY)
	}()
	<-locked
	return func() string { close(ask); return <-answer }
}

var sealCWD = func() uintptr { cwd := unix.AT_FDCWD; return uintptr(cwd) }()

func sealPath(path string) uintptr {
	text, _ := unix.BytePtrFromString(path)
	sealKept = append(sealKept, text)
	return uintptr(unsafe.Pointer(text))
}

var sealKept []*byte

func sealTry(call uintptr, args ...uintptr) string {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := unix.RawSyscall6(call, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno == 0 {
		return "ok"
	}
	return unix.ErrnoName(errno)
}

// sealForbidden tries what a locked down process must not be able to do.
func sealForbidden() map[string]string {
	argv := []uintptr{sealPath("/proc/self/exe"), 0}
	parent := uintptr(sealParent)
	return map[string]string{
		"open its own binary": sealTry(unix.SYS_OPENAT, sealCWD, sealPath("/proc/self/exe"), unix.O_RDONLY),
		"create a file":       sealTry(unix.SYS_OPENAT, sealCWD, sealPath("/tmp/x"), unix.O_CREAT|unix.O_RDWR, 0o600),
		"exec":                sealTry(unix.SYS_EXECVE, argv[0], uintptr(unsafe.Pointer(&argv[0])), 0),
		"fork":                sealTry(unix.SYS_CLONE, uintptr(unix.SIGCHLD)),
		"fork that vforks":    sealTry(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_VFORK|uintptr(unix.SIGCHLD)),
		"thread in a new net": sealTry(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_SIGHAND|unix.CLONE_THREAD|unix.CLONE_NEWNET),
		"socket":              sealTry(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0),
		"kill the parent":     sealTry(unix.SYS_KILL, parent, 0),
		"tgkill the parent":   sealTry(unix.SYS_TGKILL, parent, parent, 0),
		"kill everybody":      sealTry(unix.SYS_KILL, ^uintptr(0), 0),
		"ptrace":              sealTry(unix.SYS_PTRACE, unix.PTRACE_TRACEME),
		"io_uring":            sealTry(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&[128]byte{}))),
		"prlimit":             sealTry(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_DATA, 0, uintptr(unsafe.Pointer(&[2]uint64{}))),
		"executable memory":   sealTry(unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON, ^uintptr(0)),
		"pass a descriptor":   sealTry(unix.SYS_SENDMSG, 3, 0, 0),
		"undo by prctl":       sealTry(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1),
		"a second filter":     sealTry(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, 0),
		"clone3":              sealTry(unix.SYS_CLONE3, 0, 0),
		"x32 getpid":          sealTry(sealX32 | unix.SYS_GETPID),
		"32-bit getpid":       sealCompat(),
	}
}

// sealParent is asked before the lock.
var sealParent = os.Getppid()

// sealCompat calls getpid of the i386 table through int 0x80, with machine
// code that was mapped before the lock.
var sealCompat = sealPrepareCompat()

func sealPrepareCompat() func() string {
	if goruntime.GOARCH != "amd64" || os.Getenv(sealTestEnv) != "locked" {
		return func() string { return "EPERM" }
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
	return func() string {
		code := &page[0]
		entry := &code
		call := *(*func() uint32)(unsafe.Pointer(&entry))
		switch got := int32(call()); got {
		case -int32(unix.EPERM):
			return "EPERM"
		default:
			return fmt.Sprintf("returned %d", got)
		}
	}
}

// sealWorks uses what must go on working: threads, the collector, timers.
func sealWorks() map[string]string {
	var threads sync.WaitGroup
	for range 8 {
		threads.Go(func() {
			goruntime.LockOSThread() // each needs a thread, each ends one
			_ = bytes.Repeat([]byte{1}, 1<<20)
		})
	}
	threads.Wait()
	goruntime.GC()
	return map[string]string{"threads and the collector": "ok"}
}

// sealFiles tries what Landlock alone must refuse, before any filter.
func sealFiles() map[string]string {
	say := func(err error) string {
		var errno unix.Errno
		switch {
		case err == nil:
			return "ok"
		case errors.As(err, &errno):
			return unix.ErrnoName(errno)
		}
		return err.Error()
	}
	_, exe := os.ReadFile("/proc/self/exe")
	_, passwd := os.ReadFile("/etc/passwd")
	_, dir := os.ReadDir("/")
	return map[string]string{
		"read its own binary": say(exe),
		"read /etc/passwd":    say(passwd),
		"list the root":       say(dir),
		"create in /tmp":      say(os.WriteFile("/tmp/dsh-seal-test", nil, 0o600)),
		"run a shell":         say(exec.Command("/bin/sh", "-c", "true").Run()),
	}
}

func sealNeed(t *testing.T) {
	abi, err := ll.LandlockGetABIVersion()
	sessiontest.Need(t, "kernel", err == nil && abi >= 3, fmt.Sprintf("Landlock of version 3 or later is needed, found %d (%v)", abi, err))
}

func sealRun(t *testing.T, exe, stage string) (Seal, map[string]string) {
	t.Helper()
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := &exec.Cmd{Path: exe, Args: []string{"sealed"}, Env: []string{sealTestEnv + "=" + stage}, Stdout: out, Stderr: out}
	seal, err := StartSealed(cmd, exe)
	if err != nil {
		t.Fatal(err)
	}
	failed := cmd.Wait()
	text, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	report := map[string]string{}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatalf("the sealed process said %q (%v)", text, failed)
	}
	return seal, report
}

func compareReports(t *testing.T, got map[string]string, want func(what string) string) {
	t.Helper()
	for _, what := range slices.Sorted(maps.Keys(got)) {
		if got[what] != want(what) {
			t.Errorf("%s: %s, want %s", what, got[what], want(what))
		}
	}
}

func TestLockDownLeavesNothingButComputing(t *testing.T) {
	sealNeed(t)
	seal, got := sealRun(t, "/proc/self/exe", "locked")
	if seal.Backend != "landlock" || seal.Enforcement != "full" {
		t.Errorf("seal is %+v", seal)
	}
	if len(got) < 20 {
		t.Fatalf("only %d things were tried", len(got))
	}
	compareReports(t, got, func(what string) string {
		switch what {
		case "clone3":
			return "ENOSYS"
		case "threads and the collector":
			return "ok"
		}
		return "EPERM"
	})
	sealHostIsFree(t)
}

func TestStartSealedOpensNothingButTheBinary(t *testing.T) {
	sealNeed(t)
	_, got := sealRun(t, "/proc/self/exe", "files")
	compareReports(t, got, func(what string) string {
		if what == "read its own binary" {
			return "ok"
		}
		return "EACCES"
	})
	sealHostIsFree(t)
}

func TestStartSealedRunsADeletedBinary(t *testing.T) {
	sealNeed(t)
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "gone")
	if err := os.WriteFile(copied, text, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, got := sealRun(t, copied, "files"); got["read its own binary"] != "ok" {
		t.Errorf("a binary by path: %v", got)
	}
	file, err := os.Open(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := os.Remove(copied); err != nil {
		t.Fatal(err)
	}
	if _, got := sealRun(t, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), file.Fd()), "files"); got["read its own binary"] != "ok" {
		t.Errorf("a deleted binary: %v", got)
	}
}

func TestConcurrentSealsLeaveTheHostFree(t *testing.T) {
	sealNeed(t)
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() { sealRun(t, "/proc/self/exe", "files") })
	}
	all.Wait()
	sealHostIsFree(t)
}

// sealHostIsFree looks at every thread of this process.
func sealHostIsFree(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(files) == 0 {
		t.Fatalf("no threads found: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		// A restricted thread may still be on its way out.
		if strings.Contains(string(text), "NoNewPrivs:\t1") && sealThreadStays(file) {
			t.Errorf("%s has no_new_privs", file)
		}
		if !strings.Contains(string(text), "Seccomp:\t0") {
			t.Errorf("%s has a system call filter", file)
		}
	}
	if _, err := os.ReadFile("/etc/passwd"); err != nil {
		t.Error(err)
	}
}

func sealThreadStays(file string) bool {
	for range 1000 {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "NoNewPrivs:\t1") {
			return false
		}
		goruntime.Gosched()
	}
	return true
}

func TestStartSealedRefuses(t *testing.T) {
	sealNeed(t)
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ claim, exe, want string }{
		{"a script, which would need an interpreter", script, "must be an ELF binary"},
		{"a missing binary", script + "-not", "no such file"},
	} {
		t.Run(row.claim, func(t *testing.T) {
			cmd := &exec.Cmd{Path: row.exe}
			if _, err := StartSealed(cmd, row.exe); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want one with %q", err, row.want)
			}
			if cmd.Process != nil {
				t.Error("a process was started")
			}
		})
	}
}

func TestSealUnavailableSaysWhatToDo(t *testing.T) {
	for err, want := range map[error]string{
		unix.ENOSYS:     "Linux 5.13",
		unix.EOPNOTSUPP: "lsm=",
		unix.EPERM:      "seccomp profile",
	} {
		if got := sealUnavailable(err).Error(); !strings.Contains(got, want) || !strings.Contains(got, "nothing else was tried") {
			t.Errorf("%v: %q", err, got)
		}
	}
}

func TestSealAttrHandlesWhatTheVersionKnows(t *testing.T) {
	for _, row := range []struct {
		abi, fs, net, scopes int
		reasons              string
	}{
		{1, 13, 0, 0, "truncate network signals unix_sockets"},
		{2, 14, 0, 0, "truncate network signals unix_sockets"},
		{3, 15, 0, 0, "network signals unix_sockets"},
		{4, 15, 2, 0, "signals unix_sockets"},
		{5, 16, 2, 0, "signals unix_sockets"},
		{6, 16, 2, 2, ""},
		{99, 16, 2, 2, ""},
	} {
		attr := sealAttr(row.abi)
		if attr.HandledAccessFS != 1<<row.fs-1 || attr.HandledAccessNet != 1<<row.net-1 || attr.Scoped != 1<<row.scopes-1 {
			t.Errorf("version %d: %#x %#x %#x", row.abi, attr.HandledAccessFS, attr.HandledAccessNet, attr.Scoped)
		}
		if got := strings.Join(sealReasons(row.abi), " "); got != row.reasons {
			t.Errorf("version %d: reasons %q, want %q", row.abi, got, row.reasons)
		}
	}
}

func TestSealFilterDecides(t *testing.T) {
	const pid = 4711
	raw, err := sealFilter(pid)
	if err != nil {
		t.Fatal(err)
	}
	program, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("the filter has instructions that the simulator does not know")
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	const foreign = unix.AUDIT_ARCH_I386
	for _, row := range []struct {
		claim      string
		arch, call uint32
		args       [3]uint32
		want       uint32
	}{
		{"reading is allowed", sealArch(), unix.SYS_READ, [3]uint32{}, sealAllow},
		{"a foreign architecture's allowed number is not", foreign, unix.SYS_READ, [3]uint32{}, sealEPERM},
		{"an x32 number is not", sealArch(), sealX32 | unix.SYS_READ, [3]uint32{}, sealEPERM},
		{"Go's threads are allowed", sealArch(), unix.SYS_CLONE, [3]uint32{0x50f00}, sealAllow},
		{"glibc's threads are allowed", sealArch(), unix.SYS_CLONE, [3]uint32{0x3d0f00}, sealAllow},
		{"forks are not", sealArch(), unix.SYS_CLONE, [3]uint32{uint32(unix.SIGCHLD)}, sealEPERM},
		{"threads with namespaces are not", sealArch(), unix.SYS_CLONE, [3]uint32{0x50f00 | unix.CLONE_NEWUSER}, sealEPERM},
		{"plain memory is allowed", sealArch(), unix.SYS_MMAP, [3]uint32{0, 4096, unix.PROT_READ | unix.PROT_WRITE}, sealAllow},
		{"executable memory is not", sealArch(), unix.SYS_MPROTECT, [3]uint32{0, 4096, unix.PROT_READ | unix.PROT_EXEC}, sealEPERM},
		{"signals to itself are allowed", sealArch(), unix.SYS_TGKILL, [3]uint32{pid, 1, 9}, sealAllow},
		{"signals to others are not", sealArch(), unix.SYS_TGKILL, [3]uint32{pid + 1, 1, 9}, sealEPERM},
		{"naming memory is allowed", sealArch(), unix.SYS_PRCTL, [3]uint32{unix.PR_SET_VMA}, sealAllow},
		{"other process controls are not", sealArch(), unix.SYS_PRCTL, [3]uint32{unix.PR_SET_SECCOMP}, sealEPERM},
		{"a number of the future is not", sealArch(), 5000, [3]uint32{}, sealEPERM},
	} {
		t.Run(row.claim, func(t *testing.T) {
			got, err := vm.Run(sealData(row.arch, row.call, row.args))
			if err != nil || uint32(got) != row.want {
				t.Errorf("verdict %#x (%v), want %#x", uint32(got), err, row.want)
			}
		})
	}
}

// sealData is struct seccomp_data as the simulator reads it: big endian words.
func sealData(arch, call uint32, args [3]uint32) []byte {
	data := make([]byte, 64)
	put := func(at int, v uint32) {
		data[at], data[at+1], data[at+2], data[at+3] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
	}
	put(sealOffNumber, call)
	put(sealOffArch, arch)
	for i, arg := range args {
		put(sealOffArgs+8*i, arg)
	}
	return data
}
