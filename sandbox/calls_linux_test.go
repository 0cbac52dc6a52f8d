//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
)

const callsTestEnv = "DSH_SANDBOX_CALLS_TEST"

// The test binary, started confined, reports as JSON what system calls that it
// makes itself end with. The variable names a file outside.
func init() {
	victim := os.Getenv(callsTestEnv)
	if victim == "" {
		return
	}
	// What follows would harm a host.
	if set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || set != 1 {
		fmt.Println("this is not confined")
		os.Exit(1)
	}
	report := map[string]map[string]string{
		"stepping": steppingOutcomes(),
		"metadata": metadataOutcomes(victim),
		"others":   othersOutcomes(),
		"own":      ownOutcomes(),
	}
	text, _ := json.Marshal(report)
	fmt.Println(string(text))
	os.Exit(0)
}

// steppingOutcomes are those of what steps around Landlock.
func steppingOutcomes() map[string]string {
	var buffer [256]byte
	memory := uintptr(unsafe.Pointer(&buffer))
	root := cString("/")
	return map[string]string{
		"io_uring_setup":           try(unix.SYS_IO_URING_SETUP, 1, memory),
		"io_uring_enter":           try(unix.SYS_IO_URING_ENTER, ^uintptr(0)),
		"io_uring_register":        try(unix.SYS_IO_URING_REGISTER, ^uintptr(0)),
		"bpf":                      try(unix.SYS_BPF, 0, memory, 64),
		"perf_event_open":          try(unix.SYS_PERF_EVENT_OPEN, memory, 0, ^uintptr(0), ^uintptr(0)),
		"mount":                    try(unix.SYS_MOUNT, 0, cString(""), 0, unix.MS_REMOUNT|unix.MS_BIND),
		"umount2":                  try(unix.SYS_UMOUNT2, cString(""), 0),
		"pivot_root":               try(unix.SYS_PIVOT_ROOT, cString(""), cString("")),
		"open_tree":                try(unix.SYS_OPEN_TREE, atCWD, root, unix.OPEN_TREE_CLONE),
		"open_tree_attr":           try(unix.SYS_OPEN_TREE_ATTR, atCWD, root, unix.OPEN_TREE_CLONE),
		"move_mount":               try(unix.SYS_MOVE_MOUNT, atCWD, root, atCWD, root),
		"fsopen":                   try(unix.SYS_FSOPEN, cString("tmpfs")),
		"fsconfig":                 try(unix.SYS_FSCONFIG, ^uintptr(0)),
		"fsmount":                  try(unix.SYS_FSMOUNT, ^uintptr(0)),
		"fspick":                   try(unix.SYS_FSPICK, atCWD, root),
		"mount_setattr":            try(unix.SYS_MOUNT_SETATTR, atCWD, root, 0, memory, 32),
		"add_key":                  try(unix.SYS_ADD_KEY, cString("user"), cString("k"), memory, 1, ^uintptr(2)),
		"request_key":              try(unix.SYS_REQUEST_KEY, cString("user"), cString("k")),
		"keyctl":                   try(unix.SYS_KEYCTL, 0, ^uintptr(2)),
		"init_module":              try(unix.SYS_INIT_MODULE, memory, 1, root),
		"kexec_load":               try(unix.SYS_KEXEC_LOAD),
		"TIOCSTI":                  try(unix.SYS_IOCTL, 0, unix.TIOCSTI, memory),
		"TIOCSTI with a high half": try(unix.SYS_IOCTL, 0, unix.TIOCSTI|1<<32, memory),
		"TIOCLINUX":                try(unix.SYS_IOCTL, 0, 0x541c, memory),
		"the i386 table":           prepareCompat()(),
		"the x32 table":            try(x32 | unix.SYS_GETPID),
	}
}

// metadataOutcomes are those of changes of metadata of a file outside that
// would have been possible.
func metadataOutcomes(victim string) map[string]string {
	fd, err := unix.Open(victim, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return map[string]string{"open": err.Error()}
	}
	file, path := uintptr(fd), cString(victim)
	name, value := cString("user.dsh"), cString("v")
	uid, gid := uintptr(os.Getuid()), uintptr(os.Getgid())
	var flags uint64
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, file, unix.FS_IOC_GETFLAGS, uintptr(unsafe.Pointer(&flags)))
	var attributes [28]byte
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, file, 0x801c581f, uintptr(unsafe.Pointer(&attributes))) // FS_IOC_FSGETXATTR
	outcomes := map[string]string{
		"fchmod":            try(unix.SYS_FCHMOD, file, 0o600),
		"fchmodat":          try(unix.SYS_FCHMODAT, atCWD, path, 0o600),
		"fchmodat2":         try(unix.SYS_FCHMODAT2, atCWD, path, 0o600),
		"fchown":            try(unix.SYS_FCHOWN, file, uid, gid),
		"fchownat":          try(unix.SYS_FCHOWNAT, atCWD, path, uid, gid),
		"utimensat":         try(unix.SYS_UTIMENSAT, atCWD, path),
		"futimens":          try(unix.SYS_UTIMENSAT, file),
		"setxattr":          try(unix.SYS_SETXATTR, path, name, value, 1),
		"lsetxattr":         try(unix.SYS_LSETXATTR, path, name, value, 1),
		"fsetxattr":         try(unix.SYS_FSETXATTR, file, name, value, 1),
		"fremovexattr":      try(unix.SYS_FREMOVEXATTR, file, name),
		"FS_IOC_SETFLAGS":   try(unix.SYS_IOCTL, file, unix.FS_IOC_SETFLAGS, uintptr(unsafe.Pointer(&flags))),
		"FS_IOC_FSSETXATTR": try(unix.SYS_IOCTL, file, 0x401c5820, uintptr(unsafe.Pointer(&attributes))),
	}
	for _, call := range oldMetadataCalls {
		var args []uintptr
		switch call {
		case oldChmod:
			args = []uintptr{path, 0o600}
		case oldChown, oldLchown:
			args = []uintptr{path, uid, gid}
		case oldFutimesat:
			args = []uintptr{atCWD, path}
		default: // utime, utimes
			args = []uintptr{path, 0}
		}
		outcomes["number "+strconv.Itoa(int(call))] = try(uintptr(call), args...)
	}
	return outcomes
}

// othersOutcomes are those of reaching for a process outside: the parent.
func othersOutcomes() map[string]string {
	parent := uintptr(os.Getppid())
	var word uint64
	local := unix.Iovec{Base: (*byte)(unsafe.Pointer(&word)), Len: 8}
	vector := uintptr(unsafe.Pointer(&local))
	pidfd, err := unix.PidfdOpen(int(parent), 0)
	if err != nil {
		return map[string]string{"pidfd_open": err.Error()}
	}
	_, memory := os.OpenFile(fmt.Sprintf("/proc/%d/mem", parent), os.O_RDWR, 0)
	return map[string]string{
		// Seizing, unlike attaching, would stop nothing if it worked.
		"PTRACE_SEIZE":      try(unix.SYS_PTRACE, unix.PTRACE_SEIZE, parent),
		"process_vm_readv":  try(unix.SYS_PROCESS_VM_READV, parent, vector, 1, vector, 1),
		"process_vm_writev": try(unix.SYS_PROCESS_VM_WRITEV, parent, vector, 1, vector, 1),
		"pidfd_getfd":       try(unix.SYS_PIDFD_GETFD, uintptr(pidfd), 1),
		"/proc/PID/mem":     map[bool]string{true: "ok", false: "EPERM"}[memory == nil],
		"kill":              try(unix.SYS_KILL, parent, 0),
	}
}

// ownOutcomes are those of what goes on working: a child of its own is traced.
func ownOutcomes() map[string]string {
	child := exec.Command("/bin/true")
	child.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	started := child.Start()
	if started == nil {
		_ = child.Process.Kill()
		_ = child.Wait()
	}
	return map[string]string{"tracing an own child": errnoName(started)}
}

func TestSystemCalls(t *testing.T) {
	needKernel(t)
	for mode, metadata := range map[policy.Mode]string{policy.ReadOnly: "EROFS", policy.WorkspaceWrite: "ok"} {
		t.Run(mode.String(), func(t *testing.T) {
			p := newPlace(t)
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = []string{callsTestEnv + "=" + p.out + "/victim"}
			e := runConfined(t, p.policy(mode), cmd)
			checkCalls(t, e.stdout, metadata)
		})
	}
}

// checkCalls compares a report; metadata is what changes of metadata end with.
func checkCalls(t *testing.T, report, metadata string) {
	t.Helper()
	var got map[string]map[string]string
	if err := json.Unmarshal([]byte(report), &got); err != nil {
		t.Fatalf("%v: %q", err, report)
	}
	for group, want := range map[string]string{"stepping": "EPERM", "metadata": metadata, "others": "EPERM", "own": "ok"} {
		for what, outcome := range got[group] {
			if outcome != want && !excused(t, what, outcome) {
				t.Errorf("%s: %s, want %s", what, outcome, want)
			}
		}
		if len(got[group]) == 0 {
			t.Errorf("nothing was tried of %q", group)
		}
	}
}

// excused are outcomes that say that this kernel or file system lacks the call,
// and signals before Landlock governs them.
func excused(t *testing.T, what, outcome string) bool {
	if what == "kill" && outcome == "ok" {
		abi, err := usableABI()
		return err == nil && abi < 6
	}
	return outcome == noCompat || outcome == "ENOSYS" || outcome == "EOPNOTSUPP" || outcome == "ENOTTY"
}

// TestFilterDecides asks the simulated filters of both modes.
func TestFilterDecides(t *testing.T) {
	const ok, eperm, erofs = allow, refuseEPERM, refuseEROFS
	rows := []struct {
		claim                    string
		arch, call               uint32
		request                  uint32
		readOnly, workspaceWrite uint32
	}{
		{"reading", nativeArch(), unix.SYS_READ, 0, ok, ok},
		{"opening is Landlock's matter", nativeArch(), unix.SYS_OPENAT, 0, ok, ok},
		{"an ordinary ioctl", nativeArch(), unix.SYS_IOCTL, unix.TCGETS, ok, ok},
		{"a foreign architecture", unix.AUDIT_ARCH_I386, unix.SYS_READ, 0, eperm, eperm},
		{"a foreign architecture's metadata call", unix.AUDIT_ARCH_I386, unix.SYS_FCHMOD, 0, eperm, eperm},
		{"an x32 number", nativeArch(), x32 | unix.SYS_READ, 0, eperm, eperm},
		{"no number at all", nativeArch(), ^uint32(0), 0, eperm, eperm},
		{"forged input", nativeArch(), unix.SYS_IOCTL, unix.TIOCSTI, eperm, eperm},
		{"flags of a file", nativeArch(), unix.SYS_IOCTL, unix.FS_IOC_SETFLAGS, erofs, ok},
		{"extended attributes through a new call", nativeArch(), unix.SYS_SETXATTRAT, 0, erofs, ok},
		{"attributes through a new call", nativeArch(), unix.SYS_FILE_SETATTR, 0, erofs, ok},
	}
	for _, call := range steppingCalls {
		rows = append(rows, rows[0])
		last := &rows[len(rows)-1]
		last.claim, last.call, last.readOnly, last.workspaceWrite = fmt.Sprintf("stepping call %d", call), call, eperm, eperm
	}
	for _, call := range metadataCalls {
		rows = append(rows, rows[0])
		last := &rows[len(rows)-1]
		last.claim, last.call, last.readOnly, last.workspaceWrite = fmt.Sprintf("metadata call %d", call), call, erofs, ok
	}
	for _, row := range rows {
		for metadata, want := range map[bool]uint32{true: row.readOnly, false: row.workspaceWrite} {
			vm, err := bpf.NewVM(filterProgram(metadata))
			if err != nil {
				t.Fatal(err)
			}
			got, err := vm.Run(sealData(row.arch, row.call, [3]uint32{0, row.request}))
			if err != nil || uint32(got) != want {
				t.Errorf("%s, metadata refused %v: %#x (%v), want %#x", row.claim, metadata, uint32(got), err, want)
			}
		}
	}
}
