//go:build linux && (amd64 || arm64)

package sandbox

import (
	"testing"

	"github.com/dsh-run/dsh/session/sessiontest"
)

// needKernel skips where the kernel cannot confine.
func needKernel(t testing.TB) {
	t.Helper()
	_, err := probeLandlock()
	why := ""
	if err != nil {
		why = err.Error()
	}
	sessiontest.Need(t, "kernel", err == nil, why)
}
