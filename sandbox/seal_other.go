//go:build !linux || !(amd64 || arm64)

package sandbox

import (
	"fmt"
	"os/exec"
	goruntime "runtime"
)

// Seal says how a process started by [StartSealed] is confined.
type Seal struct {
	Backend     string
	Enforcement string
	Reasons     []string
}

// StartSealed needs Linux on amd64 or arm64; elsewhere it starts nothing.
func StartSealed(*exec.Cmd, string) (Seal, error) {
	return Seal{}, fmt.Errorf("sandbox: sealed processes need Linux on amd64 or arm64, this is %s on %s. Programs that you trust can run in process",
		goruntime.GOOS, goruntime.GOARCH)
}

// LockDown needs Linux on amd64 or arm64; elsewhere it locks nothing.
func LockDown() error {
	return fmt.Errorf("sandbox: the system call filter needs Linux on amd64 or arm64, this is %s on %s", goruntime.GOOS, goruntime.GOARCH)
}
