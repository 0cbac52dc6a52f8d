//go:build unix

package local

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// signalName is the name that the signal has in signal.h.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return sig.String()
}
