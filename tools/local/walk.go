package local

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync/atomic"

	"github.com/charlievieth/fastwalk"

	"github.com/dsh-run/dsh/policy"
)

// walk visits the files below a directory, in parallel and in no order. Links
// are not followed; folders of version control are left out.
type walk struct {
	root string
	// hidden visits names that begin with a dot.
	hidden bool
	// ignores are asked which files to leave out. Nil leaves none out.
	ignores *levels
	// links visits links to files below root as well.
	links bool
	// visit is called from several goroutines at once; rel has slashes.
	visit func(path, rel string, entry fs.DirEntry) error

	unreadable atomic.Int64 // directories
}

// versionControl are the folders that searches leave out.
var versionControl = map[string]bool{".git": true, ".hg": true, ".svn": true, ".jj": true, ".bzr": true}

func (w *walk) run(ctx context.Context) error {
	conf := &fastwalk.Config{NumWorkers: max(4, goruntime.GOMAXPROCS(0))}
	err := fastwalk.Walk(conf, w.root, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			w.unreadable.Add(1)
			return nil
		}
		if path == w.root {
			return nil
		}
		return w.entry(path, entry)
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return osFailure(w.root, err)
}

func (w *walk) entry(path string, entry fs.DirEntry) error {
	dir := entry.IsDir()
	if w.leavesOut(path, entry.Name(), dir) {
		if dir {
			return fastwalk.SkipDir
		}
		return nil
	}
	if dir || !w.isFile(path, entry) {
		return nil
	}
	return w.visit(path, filepath.ToSlash(path[len(w.root)+1:]), entry)
}

func (w *walk) leavesOut(path, name string, dir bool) bool {
	if dir && versionControl[name] {
		return true
	}
	said := silent
	if w.ignores != nil {
		said = w.ignores.at(filepath.Dir(path)).opinion(path, dir)
	}
	return said == ignored || said == silent && !w.hidden && strings.HasPrefix(name, ".")
}

func (w *walk) isFile(path string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 || !w.links {
		return entry.Type().IsRegular()
	}
	to, err := filepath.EvalSymlinks(path)
	if err != nil || !policy.Within(w.root, to) {
		return false
	}
	info, err := os.Stat(to)
	return err == nil && info.Mode().IsRegular()
}
