//go:build unix && !linux

package local

import "syscall"

const (
	nonBlocking = syscall.O_NONBLOCK
	noFollow    = syscall.O_NOFOLLOW
)
