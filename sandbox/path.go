package sandbox

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/dsh-run/dsh/policy"
)

// resolvePath makes path absolute from cwd and follows links as far as it
// exists.
func resolvePath(cwd, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(cwd, path)
	}
	path = filepath.Clean(path)
	for dir, rest := path, ""; ; {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return path
		}
		dir, rest = parent, filepath.Join(filepath.Base(dir), rest)
	}
}

// existing returns path, or its deepest ancestor that exists.
func existing(path string) string {
	for {
		if _, err := os.Lstat(path); err == nil || filepath.Dir(path) == path {
			return path
		}
		path = filepath.Dir(path)
	}
}

// checkRoot says why root cannot be a workspace.
func checkRoot(root string) error {
	canonical, err := policy.Canonical(root)
	if err != nil {
		return err
	}
	if canonical != root {
		return &policy.RootError{Root: root, Reason: "it is not canonical; the same directory is " + strconv.Quote(canonical)}
	}
	return nil
}

// identity tells whether a path still means the same object. The zero value is
// that of a missing one.
type identity struct{ device, inode uint64 }
