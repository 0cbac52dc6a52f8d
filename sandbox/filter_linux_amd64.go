package sandbox

import "golang.org/x/sys/unix"

// oldMetadataCalls exist only in this architecture's table.
var oldMetadataCalls = []uint32{
	unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN,
	unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
}

// portCalls let root talk to devices directly.
var portCalls = []uint32{unix.SYS_IOPL, unix.SYS_IOPERM}
