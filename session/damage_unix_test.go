//go:build unix

package session_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAPipeIsNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	checkNotOpened(t, path, false, "it is a pipe, want a regular file")
}
