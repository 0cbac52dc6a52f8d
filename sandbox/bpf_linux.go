//go:build linux && (amd64 || arm64)

package sandbox

import (
	"fmt"
	"maps"
	goruntime "runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data; the low half of an argument comes first on
// both architectures.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// The verdicts of a filter.
const (
	allow        = unix.SECCOMP_RET_ALLOW
	refuseEPERM  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	refuseENOSYS = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	refuseEROFS  = unix.SECCOMP_RET_ERRNO | uint32(unix.EROFS)
)

// x32 marks numbers of amd64's second table.
const x32 = 0x4000_0000

func nativeArch() uint32 {
	if goruntime.GOARCH == "arm64" {
		return unix.AUDIT_ARCH_AARCH64
	}
	return unix.AUDIT_ARCH_X86_64
}

// nativeOnly begins every filter: numbers mean something only in the native
// table, so calls of all others are refused. It leaves the number loaded.
func nativeOnly() []bpf.Instruction {
	refuse := bpf.RetConstant{Val: refuseEPERM}
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeArch(), SkipTrue: 1},
		refuse,
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: x32, SkipTrue: 1},
		refuse,
	}
}

// callRule applies a judgement, which must return on every way, to one call.
func callRule(call uint32, judgement ...bpf.Instruction) []bpf.Instruction {
	skip := bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: uint8(len(judgement))}
	return append([]bpf.Instruction{skip}, judgement...)
}

// loadArg loads the low half of an argument, for calls of which the kernel
// takes no more.
func loadArg(arg uint32) bpf.Instruction {
	return bpf.LoadAbsolute{Off: offArgs + 8*arg, Size: 4}
}

// searchRule looks the loaded value up by halving and returns its verdict, or
// allows. The kernel walks a filter once for every system call there is when
// it is loaded, so that a short way through it makes starts faster.
func searchRule(verdicts map[uint32]uint32) []bpf.Instruction {
	return searchSorted(slices.Sorted(maps.Keys(verdicts)), verdicts)
}

func searchSorted(values []uint32, verdicts map[uint32]uint32) []bpf.Instruction {
	const leaf = 3
	if len(values) <= leaf {
		var rules []bpf.Instruction
		for _, v := range values {
			rules = append(rules, callRule(v, bpf.RetConstant{Val: verdicts[v]})...)
		}
		return append(rules, bpf.RetConstant{Val: allow})
	}
	middle := len(values) / 2
	below, above := searchSorted(values[:middle], verdicts), searchSorted(values[middle:], verdicts)
	choice := bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: values[middle], SkipTrue: uint8(len(below))}
	return slices.Concat([]bpf.Instruction{choice}, below, above)
}

// mustAssemble panics on a program that no input can have made wrong.
func mustAssemble(program []bpf.Instruction) []unix.SockFilter {
	raw, err := bpf.Assemble(program)
	if err != nil {
		panic("sandbox: a system call filter cannot be assembled: " + err.Error())
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, ins := range raw {
		filter[i] = unix.SockFilter{Code: ins.Op, Jt: ins.Jt, Jf: ins.Jf, K: ins.K}
	}
	return filter
}

// loadFilter puts the filter on the calling thread, or, with the flag TSYNC,
// on all threads of the process.
func loadFilter(filter []unix.SockFilter, flags uintptr) error {
	const what = "load the system call filter (the kernel needs CONFIG_SECCOMP_FILTER)"
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	goruntime.KeepAlive(filter)
	switch {
	case errno != 0:
		return &setupError{what, errno}
	case thread != 0:
		return &setupError{what, fmt.Errorf("thread %d already has another one", thread)}
	}
	return nil
}
