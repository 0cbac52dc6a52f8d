package sandbox

import (
	"os"
	"path/filepath"
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
