package policy_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dsh-run/dsh/policy"
)

// TestFindWorktree believes a workspace only where the repository says the
// same.
func TestFindWorktree(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, common := filepath.Join(base, "ws"), filepath.Join(base, "repo", ".git")
	own := filepath.Join(common, "worktrees", "ws")
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(ws, ".git"), "gitdir: "+own+"\n")
	for _, row := range []struct {
		claim, commondir, back string
		want                   bool
	}{
		{"nothing is there", "", "", false},
		{"no way back", "../..\n", "", false},
		{"a way back to another work tree", "../..\n", filepath.Join(base, "other", ".git") + "\n", false},
		{"a common directory that is not the one above", "..\n", filepath.Join(ws, ".git") + "\n", false},
		{"as git makes it", "../..\n", filepath.Join(ws, ".git") + "\n", true},
	} {
		for name, text := range map[string]string{"commondir": row.commondir, "gitdir": row.back} {
			if text != "" {
				put(filepath.Join(own, name), text)
			}
		}
		got := policy.FindWorktree(ws)
		if (got != nil) != row.want || got != nil && *got != (policy.Worktree{GitDir: own, CommonDir: common}) {
			t.Errorf("%s: %+v", row.claim, got)
		}
	}
}
