package local

import (
	"context"
	"io/fs"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// grepping is one search under way. What it keeps is bounded; of more matches
// it keeps the first in the order of the result.
type grepping struct {
	matcher *matcher
	context int

	searched, binary, unreadable, total atomic.Int64

	mu    sync.Mutex
	files []fileMatches
	size  int
	// cutoff is the first path that matches are not kept of any more; empty:
	// all are kept.
	cutoff string
}

// fileMatches are the matches in one file.
type fileMatches struct {
	rel     string
	matches []grepMatch
	size    int
	// more says that the file has matches which were not kept.
	more bool
}

// keepLimit is how much is kept while a search runs.
const keepLimit = 4 * valueLimit

// tree searches the files below root.
func (g *grepping) tree(ctx context.Context, root string, in grepArgs) error {
	include, err := newInclude(root, in.Include)
	if err != nil {
		return err
	}
	w := &walk{root: root, hidden: in.Hidden}
	if !in.NoIgnore {
		w.ignores = &levels{}
	}
	type file struct{ path, rel string }
	queue := make(chan file, 256)
	w.visit = func(path, rel string, _ fs.DirEntry) error {
		if !include(rel) {
			return nil
		}
		select {
		case queue <- file{path, rel}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	var workers sync.WaitGroup
	for range goruntime.GOMAXPROCS(0) {
		workers.Go(func() {
			s := newSearcher(g)
			for f := range queue {
				s.file(ctx, f.path, f.rel)
			}
		})
	}
	err = w.run(ctx)
	close(queue)
	workers.Wait()
	g.unreadable.Add(w.unreadable.Load())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func newInclude(root, include string) (func(rel string) bool, error) {
	if include == "" {
		return func(string) bool { return true }, nil
	}
	p, err := parsePattern(root, include)
	return p.match, err
}

// one searches the file that was asked for itself.
func (g *grepping) one(ctx context.Context, t target) error {
	f, err := openFile(t)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := newSearcher(g).search(ctx, f, filepath.Base(t.path)); err != nil {
		return osFailure(t.path, err)
	}
	return ctx.Err()
}

// keep takes what was found in one file.
func (g *grepping) keep(f fileMatches) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cutoff != "" && f.rel >= g.cutoff {
		return
	}
	g.files = append(g.files, f)
	if g.size += f.size; g.size > keepLimit {
		g.cut(keepLimit / 2)
	}
}

// cut drops the files that are last in order, until the rest fits.
func (g *grepping) cut(limit int) {
	g.sort()
	size := 0
	for i, f := range g.files {
		if size += f.size; size > limit && i > 0 {
			g.cutoff, g.size = f.rel, size-f.size
			clear(g.files[i:])
			g.files = g.files[:i]
			return
		}
	}
}

func (g *grepping) sort() {
	slices.SortFunc(g.files, func(a, b fileMatches) int { return strings.Compare(a.rel, b.rel) })
}

func (g *grepping) value() grepValue {
	v := grepValue{
		Matches: []grepMatch{}, TotalMatches: int(g.total.Load()), FilesSearched: int(g.searched.Load()),
		SkippedBinary: int(g.binary.Load()), Unreadable: int(g.unreadable.Load()),
	}
	g.sort()
	size := 0
	for _, f := range g.files {
		for _, m := range f.matches {
			if size += m.size(); size > valueLimit {
				v.Truncated = true
				return v
			}
			v.Matches = append(v.Matches, m)
		}
		if f.more {
			break
		}
	}
	v.Truncated = len(v.Matches) < v.TotalMatches
	return v
}

// size is that of the match in JSON, about, and rather more.
func (m grepMatch) size() int {
	n := 128 + len(m.Path) + len(m.PathBytes) + encodedSize(m.Line)
	for _, l := range slices.Concat(m.Before, m.After) {
		n += 3 + encodedSize(l)
	}
	return n
}

func encodedSize(s string) int { return limits{encoded: true}.cost([]byte(s)) - lineOverhead }
