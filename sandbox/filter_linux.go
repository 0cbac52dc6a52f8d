//go:build linux && (amd64 || arm64)

package sandbox

import (
	"slices"
	"sync"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
)

// metadataCalls change owner, mode, times, attributes and extended attributes,
// which Landlock does not govern.
var metadataCalls = append([]uint32{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2,
	unix.SYS_FCHOWN, unix.SYS_FCHOWNAT,
	unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
	unix.SYS_FILE_SETATTR,
}, oldMetadataCalls...)

// steppingCalls step around what Landlock watches.
var steppingCalls = append([]uint32{
	// Rings act in the kernel, where the filter does not look.
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE,
	unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	// As root, code in the kernel or a new kernel is bound by nothing.
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
}, portCalls...)

// metadataIoctls do the same through a descriptor that may be open for reading
// only.
var metadataIoctls = []uint32{
	0x4008_6602, 0x4004_6602, // FS_IOC_SETFLAGS for programs of 64 and 32 bits
	0x401c_5820,              // FS_IOC_FSSETXATTR
	0x4008_7602, 0x4004_7602, // FS_IOC_SETVERSION
	0x4008_6604, 0x4004_6604, // EXT4_IOC_SETVERSION
	0x4080_6685, // FS_IOC_ENABLE_VERITY
	0x4004_7211, // FAT_IOCTL_SET_ATTRIBUTES
}

// steppingIoctls forge input on a terminal, or create, replace and remove
// subvolumes, which passes by all checks of paths.
var steppingIoctls = []uint32{
	unix.TIOCSTI, 0x541c, // TIOCLINUX pastes
	0x5000_9401, 0x5000_9417, // BTRFS_IOC_SNAP_CREATE, _V2
	0x5000_940e, 0x5000_9418, // BTRFS_IOC_SUBVOL_CREATE, _V2
	0x5000_940f, 0x5000_943f, // BTRFS_IOC_SNAP_DESTROY, _V2
	0x4008_941a, // BTRFS_IOC_SUBVOL_SETFLAGS
}

// filterFor returns the filter of a mode, assembled once per process.
func filterFor(mode policy.Mode) []unix.SockFilter {
	if mode == policy.WorkspaceWrite {
		return writeFilter()
	}
	return readOnlyFilter()
}

var (
	readOnlyFilter = sync.OnceValue(func() []unix.SockFilter { return mustAssemble(filterProgram(true)) })
	writeFilter    = sync.OnceValue(func() []unix.SockFilter { return mustAssemble(filterProgram(false)) })
)

// filterProgram refuses what is listed and allows the rest.
func filterProgram(metadata bool) []bpf.Instruction {
	verdicts := map[uint32]uint32{}
	for _, call := range steppingCalls {
		verdicts[call] = refuseEPERM
	}
	if metadata {
		for _, call := range metadataCalls {
			verdicts[call] = refuseEROFS
		}
	}
	return slices.Concat(nativeOnly(), callRule(unix.SYS_IOCTL, ioctlRule(metadata)...), searchRule(verdicts))
}

// ioctlRule judges the request of an ioctl, of which the kernel takes 32 bits.
func ioctlRule(metadata bool) []bpf.Instruction {
	verdicts := map[uint32]uint32{}
	for _, request := range steppingIoctls {
		verdicts[request] = refuseEPERM
	}
	if metadata {
		for _, request := range metadataIoctls {
			verdicts[request] = refuseEROFS
		}
	}
	return append([]bpf.Instruction{loadArg(1)}, searchRule(verdicts)...)
}
