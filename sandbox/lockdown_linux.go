//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	goruntime "runtime"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// LockDown leaves the calling process, all its threads and those to come, only
// the system calls that a Go program with one open socket needs: reading and
// writing what is open, memory that is never executable, threads, signals to
// itself, clocks, random numbers, exit. Everything else fails with EPERM: no
// opening of files, no starting of programs or processes, no sockets, no
// signals to others, no other architecture's calls. It cannot be undone.
//
// An error says what the kernel refused; then the process is not locked down.
func LockDown() error {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: set no_new_privs: %w", err)
	}
	filter := mustAssemble(lockDownProgram(unix.Getpid()))
	if err := loadFilter(filter, unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0); errno != unix.EPERM {
		return fmt.Errorf("sandbox: the system call filter was loaded but refuses nothing (getppid: %v)", errno)
	}
	return nil
}

// threadFlags are what Go, glibc and musl ask of a thread.
const threadFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND |
	unix.CLONE_THREAD | unix.CLONE_SYSVSEM | unix.CLONE_SETTLS | unix.CLONE_PARENT_SETTID |
	unix.CLONE_CHILD_CLEARTID | unix.CLONE_DETACHED

// computingCalls pass whatever their arguments are.
var computingCalls = []uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_CLOSE,
	unix.SYS_FUTEX, unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_MREMAP, unix.SYS_BRK,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
	unix.SYS_GETRANDOM, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETRUSAGE, unix.SYS_RESTART_SYSCALL,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// lockDownProgram is the filter for the process with the id pid.
func lockDownProgram(pid int) []bpf.Instruction {
	program := nativeOnly()
	for _, call := range computingCalls {
		program = append(program, callRule(call, bpf.RetConstant{Val: allow})...)
	}
	return slices.Concat(program,
		callRule(unix.SYS_MMAP, allowWhen(2, bpf.JumpBitsNotSet, unix.PROT_EXEC)...),
		callRule(unix.SYS_MPROTECT, allowWhen(2, bpf.JumpBitsNotSet, unix.PROT_EXEC)...),
		callRule(unix.SYS_CLONE, threadsOnly()...),
		callRule(unix.SYS_CLONE3, bpf.RetConstant{Val: refuseENOSYS}),
		callRule(unix.SYS_TGKILL, allowWhen(0, bpf.JumpEqual, uint32(pid))...),
		callRule(unix.SYS_PRCTL, allowWhen(0, bpf.JumpEqual, unix.PR_SET_VMA)...),
		callRule(unix.SYS_FCNTL, allowWhen(1, bpf.JumpEqual, unix.F_GETFL)...),
		[]bpf.Instruction{bpf.RetConstant{Val: refuseEPERM}})
}

// allowWhen allows a call if the condition holds for its argument arg, of
// which the kernel takes 32 bits.
func allowWhen(arg uint32, cond bpf.JumpTest, value uint32) []bpf.Instruction {
	return []bpf.Instruction{
		loadArg(arg),
		bpf.JumpIf{Cond: cond, Val: value, SkipTrue: 1},
		bpf.RetConstant{Val: refuseEPERM},
		bpf.RetConstant{Val: allow},
	}
}

// threadsOnly allows clone for threads: the thread flag must be there, and
// none that would give the new one anything of its own.
func threadsOnly() []bpf.Instruction {
	return []bpf.Instruction{
		loadArg(0),
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: ^uint32(threadFlags), SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: unix.CLONE_THREAD, SkipTrue: 1},
		bpf.RetConstant{Val: allow},
		bpf.RetConstant{Val: refuseEPERM},
	}
}
