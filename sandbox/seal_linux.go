//go:build linux && (amd64 || arm64)

package sandbox

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Seal says how a process started by [StartSealed] is confined.
type Seal struct {
	Backend     string // "landlock"
	Enforcement string // "full"
	// Reasons name what this kernel's Landlock does not govern, so that it
	// rests on [LockDown] alone.
	Reasons []string
}

// StartSealed starts cmd, without waiting for it, so that no file is open to
// it but the program exe itself, which it may read and execute; a dynamically
// linked one also its loader and library directories. Where the kernel's
// Landlock knows them, TCP, abstract sockets and signals to the outside are
// refused too. The process gets a new session, no_new_privs and core size 0.
//
// exe is what cmd executes; "/proc/self/exe" works for a binary that has been
// replaced or deleted. cmd's streams must be files or nil. The calling process
// and its other threads stay as they are.
//
// The process is expected to call [LockDown] before it touches anything that
// is not trusted. On an error nothing was started; it says what was missing
// and what to do.
func StartSealed(cmd *exec.Cmd, exe string) (Seal, error) {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil || abi < 1 {
		return Seal{}, sealUnavailable(err)
	}
	ruleset, err := sealRuleset(abi, exe)
	if err != nil {
		return Seal{}, err
	}
	defer unix.Close(ruleset)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return Seal{}, fmt.Errorf("sandbox: the sealed process needs %s for its streams: %w", os.DevNull, err)
	}
	defer null.Close()
	sealPrepare(cmd, null)
	if err := sealThread(func() error { return sealStart(cmd, ruleset) }); err != nil {
		return Seal{}, err
	}
	none := unix.Rlimit{}
	if err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_CORE, &none, nil); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return Seal{}, fmt.Errorf("sandbox: set the core size of the sealed process to 0: %w", err)
	}
	return Seal{Backend: "landlock", Enforcement: "full", Reasons: sealReasons(abi)}, nil
}

func sealUnavailable(err error) error {
	why := "it answered without a version"
	switch {
	case errors.Is(err, unix.ENOSYS):
		why = "this kernel is built without it (Linux 5.13 or later has it)"
	case errors.Is(err, unix.EOPNOTSUPP):
		why = "this kernel was booted with it disabled (add landlock to the lsm= boot parameter)"
	case errors.Is(err, unix.EPERM):
		why = "a system call filter around this process forbids it (allow the landlock_* calls in the container's seccomp profile)"
	case err != nil:
		why = err.Error()
	}
	return fmt.Errorf("sandbox: landlock: %s; nothing else was tried. Programs that you trust can run in process", why)
}

// sealReasons lists what Landlock of this version leaves to the filter.
func sealReasons(abi int) []string {
	var reasons []string
	for _, step := range []struct {
		since  int
		reason string
	}{{3, "truncate"}, {4, "network"}, {6, "signals"}, {6, "unix_sockets"}} {
		if abi < step.since {
			reasons = append(reasons, step.reason)
		}
	}
	return reasons
}

// sealAttr handles everything that version abi can refuse. The newest version
// known here bounds it: a later one may give bits another company.
func sealAttr(abi int) ll.RulesetAttr {
	const base = ll.AccessFSExecute | ll.AccessFSWriteFile | ll.AccessFSReadFile | ll.AccessFSReadDir |
		ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeChar | ll.AccessFSMakeDir |
		ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeBlock | ll.AccessFSMakeSym
	attr := ll.RulesetAttr{HandledAccessFS: base}
	if abi >= 2 {
		attr.HandledAccessFS |= ll.AccessFSRefer
	}
	if abi >= 3 {
		attr.HandledAccessFS |= ll.AccessFSTruncate
	}
	if abi >= 4 {
		attr.HandledAccessNet = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	if abi >= 5 {
		attr.HandledAccessFS |= ll.AccessFSIoctlDev
	}
	if abi >= 6 {
		attr.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	return attr
}

func sealRuleset(abi int, exe string) (int, error) {
	grants, err := sealGrants(exe)
	if err != nil {
		return -1, err
	}
	attr := sealAttr(abi)
	fd, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return -1, fmt.Errorf("sandbox: landlock: create a ruleset of version %d: %w", abi, err)
	}
	for _, grant := range grants {
		if err := sealGrant(fd, grant); err != nil {
			unix.Close(fd)
			return -1, err
		}
	}
	return fd, nil
}

// A sealGrantRule opens one file or directory to the sealed process.
type sealGrantRule struct {
	path   string
	rights uint64
	needed bool
}

func sealGrant(ruleset int, grant sealGrantRule) error {
	fd, err := unix.Open(grant.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		if grant.needed {
			return fmt.Errorf("sandbox: open %s for the sealed process: %w", grant.path, err)
		}
		return nil
	}
	defer unix.Close(fd)
	rule := ll.PathBeneathAttr{AllowedAccess: grant.rights, ParentFd: fd}
	if err := ll.LandlockAddPathBeneathRule(ruleset, &rule, 0); err != nil {
		return fmt.Errorf("sandbox: landlock: grant %s: %w", grant.path, err)
	}
	return nil
}

// sealGrants is the whole list of what exe needs in order to start.
func sealGrants(exe string) ([]sealGrantRule, error) {
	const run = ll.AccessFSExecute | ll.AccessFSReadFile
	grants := []sealGrantRule{{exe, run, true}}
	file, err := elf.Open(exe)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %s must be an ELF binary to be sealed: %w", exe, err)
	}
	defer file.Close()
	loader := sealLoader(file)
	if loader == "" {
		return grants, nil
	}
	grants = append(grants,
		sealGrantRule{loader, run, true},
		sealGrantRule{"/etc/ld.so.cache", ll.AccessFSReadFile, false})
	for _, dir := range sealLibraryDirs(file, exe, loader) {
		grants = append(grants, sealGrantRule{dir, run | ll.AccessFSReadDir, false})
	}
	return grants, nil
}

// sealLoader is the program interpreter of a dynamic binary, "" of a static one.
func sealLoader(file *elf.File) string {
	for _, prog := range file.Progs {
		if prog.Type != elf.PT_INTERP {
			continue
		}
		text := make([]byte, min(prog.Filesz, unix.PathMax))
		if n, err := prog.ReadAt(text, 0); err != nil && n == 0 {
			return ""
		}
		return strings.TrimRight(string(text), "\x00")
	}
	return ""
}

func sealLibraryDirs(file *elf.File, exe, loader string) []string {
	dirs := []string{filepath.Dir(loader), "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"}
	for _, tag := range []elf.DynTag{elf.DT_RUNPATH, elf.DT_RPATH} {
		paths, err := file.DynString(tag)
		if err != nil {
			continue
		}
		origin := filepath.Dir(sealRealPath(exe))
		for _, dir := range filepath.SplitList(strings.Join(paths, ":")) {
			dir = strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin).Replace(dir)
			if filepath.IsAbs(dir) && filepath.Clean(dir) != "/" {
				dirs = append(dirs, filepath.Clean(dir))
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func sealRealPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// sealPrepare leaves nothing for Start to open: it runs where opening fails.
func sealPrepare(cmd *exec.Cmd, null *os.File) {
	if cmd.Stdin == nil {
		cmd.Stdin = null
	}
	if cmd.Stdout == nil {
		cmd.Stdout = null
	}
	if cmd.Stderr == nil {
		cmd.Stderr = null
	}
	attr := syscall.SysProcAttr{}
	if cmd.SysProcAttr != nil {
		attr = *cmd.SysProcAttr
	}
	attr.Setsid = true
	cmd.SysProcAttr = &attr
	// Package os finds out once per process, at the first start, whether
	// process descriptors work; on a confined thread it would find that they
	// do not.
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Release()
	}
}

// sealStart runs on a thread that ends with it.
func sealStart(cmd *exec.Cmd, ruleset int) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: set no_new_privs: %w", err)
	}
	if err := ll.LandlockRestrictSelf(ruleset, 0); err != nil {
		return fmt.Errorf("sandbox: landlock: restrict a thread: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("sandbox: start the sealed process: %w", err)
	}
	return nil
}

// sealThread runs effect on a thread of its own that is thrown away. Never on
// the main thread: that one cannot be thrown away.
func sealThread(effect func() error) error {
	done := make(chan error, 1)
	go sealOffMain(func() { done <- effect() })
	return <-done
}

func sealOffMain(run func()) {
	goruntime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		run()
		return // still locked: the thread ends with the goroutine
	}
	elsewhere := make(chan struct{})
	go func() {
		goruntime.LockOSThread()
		close(elsewhere)
		run()
	}()
	<-elsewhere
	goruntime.UnlockOSThread()
}

// LockDown leaves the calling process, all its threads and those to come, only
// the system calls that a Go program with one open socket needs: reading and
// writing what is open, memory that is never executable, threads, signals to
// itself, clocks, random numbers, exit. Everything else fails with EPERM: no
// opening of files, no starting of programs or processes, no sockets, no
// signals to others, no other architecture's calls. It cannot be undone.
//
// An error says what the kernel refused; then the process is not locked down.
func LockDown() error {
	filter, err := sealFilter(unix.Getpid())
	if err != nil {
		return fmt.Errorf("sandbox: assemble the system call filter: %w", err)
	}
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: set no_new_privs: %w", err)
	}
	if err := sealLoadFilter(filter); err != nil {
		return err
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); errno != unix.EPERM {
		return fmt.Errorf("sandbox: the system call filter was loaded but refuses nothing (getppid: %v)", errno)
	}
	return nil
}

func sealLoadFilter(filter []bpf.RawInstruction) error {
	program := make([]unix.SockFilter, len(filter))
	for i, ins := range filter {
		program[i] = unix.SockFilter{Code: ins.Op, Jt: ins.Jt, Jf: ins.Jf, K: ins.K}
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	goruntime.KeepAlive(program)
	switch {
	case errno != 0:
		return fmt.Errorf("sandbox: load the system call filter (the kernel needs CONFIG_SECCOMP_FILTER): %w", errno)
	case thread != 0:
		return fmt.Errorf("sandbox: load the system call filter: thread %d already has another one", thread)
	}
	return nil
}

// Offsets in struct seccomp_data; the low half of an argument comes first on
// both architectures.
const (
	sealOffNumber = 0
	sealOffArch   = 4
	sealOffArgs   = 16
)

const (
	sealAllow  = unix.SECCOMP_RET_ALLOW
	sealEPERM  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	sealENOSYS = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	// sealX32 marks numbers of amd64's second table.
	sealX32 = 0x4000_0000
)

// sealThreadFlags are what Go, glibc and musl ask of a thread.
const sealThreadFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND |
	unix.CLONE_THREAD | unix.CLONE_SYSVSEM | unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID |
	unix.CLONE_CHILD_CLEARTID | unix.CLONE_DETACHED

// sealCalls pass whatever their arguments are.
var sealCalls = []uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_CLOSE,
	unix.SYS_FUTEX, unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MREMAP, unix.SYS_BRK,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
	unix.SYS_GETRANDOM, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETRUSAGE, unix.SYS_RESTART_SYSCALL,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// sealFilter is the filter for the process with the id pid.
func sealFilter(pid int) ([]bpf.RawInstruction, error) {
	refuse := bpf.RetConstant{Val: sealEPERM}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: sealOffArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: sealArch(), SkipTrue: 1},
		refuse,
		bpf.LoadAbsolute{Off: sealOffNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: sealX32, SkipTrue: 1},
		refuse,
	}
	for _, call := range sealCalls {
		program = append(program, sealRule(call, bpf.RetConstant{Val: sealAllow})...)
	}
	for _, call := range []uint32{unix.SYS_MMAP, unix.SYS_MPROTECT} {
		program = append(program, sealRule(call, sealWhen(2, bpf.JumpBitsNotSet, unix.PROT_EXEC)...)...)
	}
	program = append(program, sealRule(unix.SYS_CLONE, sealThreadsOnly()...)...)
	program = append(program, sealRule(unix.SYS_CLONE3, bpf.RetConstant{Val: sealENOSYS})...)
	program = append(program, sealRule(unix.SYS_TGKILL, sealWhen(0, bpf.JumpEqual, uint32(pid))...)...)
	program = append(program, sealRule(unix.SYS_PRCTL, sealWhen(0, bpf.JumpEqual, unix.PR_SET_VMA)...)...)
	program = append(program, sealRule(unix.SYS_FCNTL, sealWhen(1, bpf.JumpEqual, unix.F_GETFL)...)...)
	return bpf.Assemble(append(program, refuse))
}

func sealArch() uint32 {
	if goruntime.GOARCH == "arm64" {
		return unix.AUDIT_ARCH_AARCH64
	}
	return unix.AUDIT_ARCH_X86_64
}

// sealRule applies a verdict, which must return on every way, to one call.
func sealRule(call uint32, verdict ...bpf.Instruction) []bpf.Instruction {
	skip := bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: uint8(len(verdict))}
	return append([]bpf.Instruction{skip}, verdict...)
}

// sealWhen allows a call if the condition holds for its argument arg. The
// kernel takes these arguments as 32 bits, so the upper half does not matter.
func sealWhen(arg uint32, cond bpf.JumpTest, value uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: sealOffArgs + 8*arg, Size: 4},
		bpf.JumpIf{Cond: cond, Val: value, SkipTrue: 1},
		bpf.RetConstant{Val: sealEPERM},
		bpf.RetConstant{Val: sealAllow},
	}
}

// sealThreadsOnly allows clone for threads: the thread flag must be there, and
// none that would give the new one anything of its own.
func sealThreadsOnly() []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: sealOffArgs, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: ^uint32(sealThreadFlags), SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: unix.CLONE_THREAD, SkipTrue: 1},
		bpf.RetConstant{Val: sealAllow},
		bpf.RetConstant{Val: sealEPERM},
	}
}
