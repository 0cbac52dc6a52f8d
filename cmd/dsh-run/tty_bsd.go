//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package main

import "golang.org/x/sys/unix"

func flushInput(fd int) error {
	const reading = 1 // FREAD
	return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, reading)
}
