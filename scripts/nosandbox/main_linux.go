//go:build linux && (amd64 || arm64)

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	goruntime "runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) < 2 {
		fail(125, errors.New("usage: nosandbox command [argument]"))
	}
	path, err := exec.LookPath(os.Args[1])
	if err != nil {
		fail(statusOf(err), err)
	}
	goruntime.LockOSThread() // the filter belongs to the thread that executes
	if err := load(filter()); err != nil {
		fail(125, fmt.Errorf("load the system call filter: %w", err))
	}
	err = unix.Exec(path, os.Args[1:], os.Environ())
	fail(statusOf(err), fmt.Errorf("execute %s: %w", path, err))
}

func statusOf(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}

func fail(status int, err error) {
	fmt.Fprintln(os.Stderr, "nosandbox:", err)
	os.Exit(status)
}

// load puts the filter on this thread. Only who may not do that otherwise gives
// up gaining privileges, which would be one more thing that differs.
func load(program []unix.SockFilter) error {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	err := seccomp(&prog)
	if !errors.Is(err, unix.EACCES) {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return seccomp(&prog)
}

func seccomp(prog *unix.SockFprog) error {
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(prog)))
	if errno != 0 {
		return errno
	}
	return nil
}

const (
	offNumber = 0
	offArch   = 4
	offFlags  = 16 // the first argument: clone's flags, on both architectures

	namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

	allow  = unix.SECCOMP_RET_ALLOW
	enosys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	eperm  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
)

// filter judges native calls; those of another architecture know Landlock by
// other numbers and are refused.
func filter() []unix.SockFilter {
	program := []unix.SockFilter{
		loadWord(offArch),
		jump(unix.BPF_JEQ, arch(), 1, 0),
		verdict(eperm),
		loadWord(offNumber),
	}
	for _, rule := range []struct{ call, verdict uint32 }{
		{unix.SYS_LANDLOCK_CREATE_RULESET, enosys},
		{unix.SYS_LANDLOCK_ADD_RULE, enosys},
		{unix.SYS_LANDLOCK_RESTRICT_SELF, enosys},
		{unix.SYS_CLONE3, enosys}, // its flags are out of a filter's reach
		{unix.SYS_UNSHARE, eperm},
		{unix.SYS_SETNS, eperm},
	} {
		program = append(program, jump(unix.BPF_JEQ, rule.call, 0, 1), verdict(rule.verdict))
	}
	return append(program,
		jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 3),
		loadWord(offFlags),
		jump(unix.BPF_JSET, namespaces, 0, 1),
		verdict(eperm),
		verdict(allow),
	)
}

func loadWord(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func jump(condition uint16, value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | condition | unix.BPF_K, Jt: yes, Jf: no, K: value}
}

func verdict(value uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: value}
}

func arch() uint32 {
	if goruntime.GOARCH == "arm64" {
		return unix.AUDIT_ARCH_AARCH64
	}
	return unix.AUDIT_ARCH_X86_64
}
