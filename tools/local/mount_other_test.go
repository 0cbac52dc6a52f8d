//go:build !linux

package local_test

import (
	"testing"

	"github.com/dsh-run/dsh/session/sessiontest"
)

func mountSmall(t *testing.T, dir string) string {
	t.Helper()
	sessiontest.Need(t, "mount", false, "a small file system could not be mounted")
	return dir
}
