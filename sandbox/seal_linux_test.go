//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	switch stage {
	case "deleted":
		fmt.Print(sealFromADeletedBinary())
		os.Exit(0)
	case "locked":
		crowd, compat := sealCrowd(), prepareCompat()
		if err := LockDown(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		report["a thread from before"] = crowd()
		maps.Copy(report, sealForbidden(compat))
		maps.Copy(report, sealWorks())
	default:
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
		answer <- try(unix.SYS_OPENAT, atCWD, cString("/proc/self/exe"), unix.O_RDONLY)
	}()
	<-locked
	return func() string { close(ask); return <-answer }
}

// sealForbidden tries what a locked down process must not be able to do.
func sealForbidden(compat func() string) map[string]string {
	argv := []uintptr{cString("/proc/self/exe"), 0}
	parent := uintptr(sealParent)
	return map[string]string{
		"open its own binary": try(unix.SYS_OPENAT, atCWD, cString("/proc/self/exe"), unix.O_RDONLY),
		"create a file":       try(unix.SYS_OPENAT, atCWD, cString("/tmp/x"), unix.O_CREAT|unix.O_RDWR, 0o600),
		"exec":                try(unix.SYS_EXECVE, argv[0], uintptr(unsafe.Pointer(&argv[0])), 0),
		"fork":                try(unix.SYS_CLONE, uintptr(unix.SIGCHLD)),
		"fork that vforks":    try(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_VFORK|uintptr(unix.SIGCHLD)),
		"thread in a new net": try(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_SIGHAND|unix.CLONE_THREAD|unix.CLONE_NEWNET),
		"socket":              try(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0),
		"kill the parent":     try(unix.SYS_KILL, parent, 0),
		"tgkill the parent":   try(unix.SYS_TGKILL, parent, parent, 0),
		"kill everybody":      try(unix.SYS_KILL, ^uintptr(0), 0),
		"ptrace":              try(unix.SYS_PTRACE, unix.PTRACE_TRACEME),
		"io_uring":            try(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&[128]byte{}))),
		"prlimit":             try(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_DATA, 0, uintptr(unsafe.Pointer(&[2]uint64{}))),
		"executable memory":   try(unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON, ^uintptr(0)),
		"pass a descriptor":   try(unix.SYS_SENDMSG, 3, 0, 0),
		"undo by prctl":       try(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1),
		"a second filter":     try(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, 0),
		"clone3":              try(unix.SYS_CLONE3, 0, 0),
		"x32 getpid":          try(x32 | unix.SYS_GETPID),
		"32-bit getpid":       compat(),
	}
}

// sealParent is asked before the lock.
var sealParent = os.Getppid()

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
	_, exe := os.ReadFile("/proc/self/exe")
	_, passwd := os.ReadFile("/etc/passwd")
	_, dir := os.ReadDir("/")
	return map[string]string{
		"read its own binary": errnoName(exe),
		"read /etc/passwd":    errnoName(passwd),
		"list the root":       errnoName(dir),
		"create in /tmp":      errnoName(os.WriteFile("/tmp/dsh-seal-test", nil, 0o600)),
		"run a shell":         errnoName(exec.Command("/bin/sh", "-c", "true").Run()),
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
		case "32-bit getpid":
			if got[what] == noCompat {
				t.Log("this kernel has no 32-bit entry to try")
				return noCompat
			}
		}
		return "EPERM"
	})
	hostIsFree(t)
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
	hostIsFree(t)
}

// sealFromADeletedBinary deletes its own binary, starts itself sealed, and
// returns what that one reports.
func sealFromADeletedBinary() string {
	if err := os.Remove(os.Args[0]); err != nil {
		return err.Error()
	}
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{"sealed"}, Env: []string{sealTestEnv + "=files"}, Stdout: os.Stdout, Stderr: os.Stdout}
	if _, err := StartSealed(cmd, cmd.Path); err != nil {
		return err.Error()
	}
	_ = cmd.Wait() // its report says whether it worked
	return ""
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
	host := exec.Command(copied)
	host.Env = []string{sealTestEnv + "=deleted"}
	out, err := host.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got map[string]string
	if err := json.Unmarshal(out, &got); err != nil || got["read its own binary"] != "ok" {
		t.Errorf("a deleted binary: %s (%v)", out, err)
	}
	if _, err := os.Stat(copied); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the binary is still there (%v)", err)
	}
}

func TestConcurrentSealsLeaveTheHostFree(t *testing.T) {
	sealNeed(t)
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() { sealRun(t, "/proc/self/exe", "files") })
	}
	all.Wait()
	hostIsFree(t)
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
		{"a binary in another process's /proc folder", "/proc/1/exe", "name the file itself"},
		{"a binary by one of this process's descriptors", "/proc/self/fd/3", "name the file itself"},
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
		{9, 17, 2, 2, ""},
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
	vm, err := bpf.NewVM(lockDownProgram(pid))
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
		{"reading is allowed", nativeArch(), unix.SYS_READ, [3]uint32{}, allow},
		{"a foreign architecture's allowed number is not", foreign, unix.SYS_READ, [3]uint32{}, refuseEPERM},
		{"an x32 number is not", nativeArch(), x32 | unix.SYS_READ, [3]uint32{}, refuseEPERM},
		{"Go's threads are allowed", nativeArch(), unix.SYS_CLONE, [3]uint32{0x50f00}, allow},
		{"glibc's threads are allowed", nativeArch(), unix.SYS_CLONE, [3]uint32{0x3d0f00}, allow},
		{"forks are not", nativeArch(), unix.SYS_CLONE, [3]uint32{uint32(unix.SIGCHLD)}, refuseEPERM},
		{"threads with namespaces are not", nativeArch(), unix.SYS_CLONE, [3]uint32{0x50f00 | unix.CLONE_NEWUSER}, refuseEPERM},
		{"plain memory is allowed", nativeArch(), unix.SYS_MMAP, [3]uint32{0, 4096, unix.PROT_READ | unix.PROT_WRITE}, allow},
		{"executable memory is not", nativeArch(), unix.SYS_MPROTECT, [3]uint32{0, 4096, unix.PROT_READ | unix.PROT_EXEC}, refuseEPERM},
		{"signals to itself are allowed", nativeArch(), unix.SYS_TGKILL, [3]uint32{pid, 1, 9}, allow},
		{"signals to others are not", nativeArch(), unix.SYS_TGKILL, [3]uint32{pid + 1, 1, 9}, refuseEPERM},
		{"naming memory is allowed", nativeArch(), unix.SYS_PRCTL, [3]uint32{unix.PR_SET_VMA}, allow},
		{"other process controls are not", nativeArch(), unix.SYS_PRCTL, [3]uint32{unix.PR_SET_SECCOMP}, refuseEPERM},
		{"a number of the future is not", nativeArch(), 5000, [3]uint32{}, refuseEPERM},
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
	put(offNumber, call)
	put(offArch, arch)
	for i, arg := range args {
		put(offArgs+8*i, arg)
	}
	return data
}
