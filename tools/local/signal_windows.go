package local

import "syscall"

func signalName(sig syscall.Signal) string { return sig.String() }
