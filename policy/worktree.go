package policy

import (
	"os"
	"path/filepath"
	"strings"
)

// Worktree is where git keeps what belongs to a linked work tree (git worktree
// add): outside of it, in the repository that it was made from.
type Worktree struct {
	// GitDir is the work tree's own directory, <CommonDir>/worktrees/<name>.
	GitDir string `json:"git_dir"`
	// CommonDir is the repository's.
	CommonDir string `json:"common_dir"`
}

// FindWorktree returns the work tree that the canonical root is, or nil. What
// stands in root is believed only where the repository says the same: otherwise
// a file in the workspace could make any directory writable.
func FindWorktree(root string) *Worktree {
	text, ok := shortFile(filepath.Join(root, ".git"))
	gitDir, named := strings.CutPrefix(text, "gitdir: ")
	if !ok || !named {
		return nil
	}
	w := &Worktree{GitDir: resolved(root, gitDir)}
	common, ok := shortFile(filepath.Join(w.GitDir, "commondir"))
	if !ok {
		return nil
	}
	w.CommonDir = resolved(w.GitDir, common)
	back, ok := shortFile(filepath.Join(w.GitDir, "gitdir"))
	if !ok || resolved(w.GitDir, back) != filepath.Join(root, ".git") || filepath.Dir(w.GitDir) != filepath.Join(w.CommonDir, "worktrees") {
		return nil
	}
	return w
}

// shortFile is the text of a regular file without its last line's end.
func shortFile(path string) (string, bool) {
	const longest = 8 << 10
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > longest {
		return "", false
	}
	text, err := os.ReadFile(path)
	return strings.TrimRight(string(text), "\r\n"), err == nil && len(text) > 0
}

// resolved is the canonical form of path, which starts at from; as spelled
// where it does not exist.
func resolved(from, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(from, path)
	}
	return canonicalOr(filepath.Clean(path))
}

// dirs are what commits need to write.
func (w *Worktree) dirs() []string {
	return []string{w.GitDir, filepath.Join(w.CommonDir, "objects"), filepath.Join(w.CommonDir, "refs"), filepath.Join(w.CommonDir, "logs")}
}

// protected are what must not change below them, and the file that leads to
// them.
func (w *Worktree) protected(root string) []string {
	list := []string{filepath.Join(root, ".git")}
	for _, name := range []string{"commondir", "gitdir", "config.worktree", "config", "hooks"} {
		list = append(list, filepath.Join(w.GitDir, name))
	}
	return list
}
