package local_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/dsh-run/dsh/session/sessiontest"
)

// mountSmall mounts a file system of 64 KiB at dir.
func mountSmall(t *testing.T, dir string) string {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k")
	sessiontest.Need(t, "mount", err == nil, "a small file system could not be mounted")
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}
