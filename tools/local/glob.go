package local

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/dsh-run/dsh/tools"
)

//go:embed glob.md
var globDescription string

type globArgs struct {
	Pattern string `json:"pattern" jsonschema:"the glob; without a slash it is compared with file names at any depth"`
	Path    string `json:"path,omitempty" jsonschema:"the directory to search, taken literally; the working directory by default"`
}

type globValue struct {
	// Root is the directory that Paths start at.
	Root  string   `json:"root"`
	Paths []string `json:"paths"`
	// Truncated says that Paths holds not all of the Total files.
	Truncated bool `json:"truncated,omitempty"`
	Total     int  `json:"total"`
	// Unreadable is the number of directories that could not be listed.
	Unreadable int `json:"unreadable,omitempty"`
}

func (s *Set) searchTools() []tools.Tool { return []tools.Tool{s.globTool(), s.grepTool()} }

func (s *Set) globTool() tools.Tool {
	return tools.New(tools.Tool{
		Name: "glob", Description: globDescription, Render: tools.Renderer(renderGlob),
		Overlaps: always, Effect: tools.NoEffect, Idempotent: true,
	}, s.glob)
}

// globFile is a file that was found.
type globFile struct {
	path  string
	mtime int64
}

func (s *Set) glob(ctx context.Context, call *tools.Call, in globArgs) (v globValue, err error) {
	root, err := s.directory(call, in.Path)
	if err != nil {
		return v, err
	}
	p, err := parsePattern(root, in.Pattern)
	if err != nil {
		return v, err
	}
	v.Root, _ = nameText(root)
	if filepath.IsAbs(filepath.FromSlash(p.base)) {
		v.Root = p.base
	}
	g := &globbing{pattern: p}
	if err := g.run(ctx, root); err != nil {
		return v, err
	}
	slices.SortFunc(g.files, func(a, b globFile) int { return cmp.Or(cmp.Compare(b.mtime, a.mtime), cmp.Compare(a.path, b.path)) })
	v.Total, v.Unreadable = len(g.files), g.unreadable
	v.fill(g.files)
	return v, nil
}

// directory is the canonical directory that a search starts in.
func (s *Set) directory(call *tools.Call, path string) (string, error) {
	t, err := s.resolve(call, cmp.Or(path, "."))
	switch {
	case err != nil:
		return "", err
	case !t.exists():
		return "", notFound(path, t)
	case !t.info.IsDir():
		return "", fail(NotDirectory, "%s is not a directory", shownPath(path))
	}
	return t.path, nil
}

// valueLimit is the size of the lists in a value, below what a call may return.
const valueLimit = 14 << 20

func (v *globValue) fill(files []globFile) {
	v.Paths = make([]string, 0, len(files))
	size := 0
	for _, f := range files {
		text, _ := nameText(f.path)
		if size += len(text) + 8; size > valueLimit {
			v.Truncated = true
			return
		}
		v.Paths = append(v.Paths, text)
	}
}

// globbing is one search under way.
type globbing struct {
	pattern    pattern
	unreadable int

	mu    sync.Mutex
	files []globFile
}

// run collects what matches. Paths start at root, or at the base of a pattern
// that is absolute.
func (g *globbing) run(ctx context.Context, root string) error {
	base := filepath.FromSlash(g.pattern.base)
	prefix := strings.TrimSuffix(g.pattern.base, "/") + "/"
	shown := prefix
	switch {
	case filepath.IsAbs(base):
		shown = ""
	case base == ".":
		prefix, shown = "", ""
	}
	// The first segments are spelled out, so links among them are followed.
	t, err := resolve(root, base)
	if err != nil || !t.exists() || !t.info.IsDir() {
		return nil
	}
	w := &walk{root: t.path, hidden: true, links: true}
	w.visit = func(path, rel string, entry fs.DirEntry) error {
		if !g.pattern.match(prefix + rel) {
			return nil
		}
		return g.add(shown+rel, entry)
	}
	err = w.run(ctx)
	g.unreadable = int(w.unreadable.Load())
	return err
}

func (g *globbing) add(path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return nil // it went away
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.files = append(g.files, globFile{path, info.ModTime().UnixNano()})
	return nil
}

// globShown is how many files a model is shown.
const globShown = 100

func renderGlob(in globArgs, v globValue) []tools.Content {
	var b strings.Builder
	paths := v.Paths
	if len(paths) > globShown {
		paths = spread(paths)
	}
	for _, p := range paths {
		b.WriteString(shownPath(p) + "\n")
	}
	switch {
	case v.Total == 0:
		fmt.Fprintf(&b, "[no file in %s matches %s]", shownPath(v.Root), in.Pattern)
	case len(paths) < v.Total:
		fmt.Fprintf(&b, "[%d of %d files in %s, a sample of each of its entries: %s; narrow the pattern to see the rest]", len(paths), v.Total, shownPath(v.Root), counts(v.Paths))
	default:
		fmt.Fprintf(&b, "[%d files in %s, newest first]", v.Total, shownPath(v.Root))
	}
	if v.Unreadable > 0 {
		fmt.Fprintf(&b, "\n[%d directories could not be read]", v.Unreadable)
	}
	return []tools.Content{tools.Text(b.String())}
}

func topEntry(path string) string {
	if dir, _, ok := strings.Cut(path, "/"); ok {
		return dir + "/"
	}
	return "."
}

// spread picks paths from all top-level entries in turn, and keeps their order.
func spread(paths []string) []string {
	var entries []string
	byEntry := map[string][]int{}
	for i, p := range paths {
		e := topEntry(p)
		if byEntry[e] == nil {
			entries = append(entries, e)
		}
		byEntry[e] = append(byEntry[e], i)
	}
	var picked []int
	for round := 0; len(picked) < globShown; round++ {
		for _, e := range entries {
			if round < len(byEntry[e]) && len(picked) < globShown {
				picked = append(picked, byEntry[e][round])
			}
		}
	}
	slices.Sort(picked)
	sample := make([]string, len(picked))
	for i, at := range picked {
		sample[i] = paths[at]
	}
	return sample
}

// counts says how many files lie in each top-level entry, the fullest first.
func counts(paths []string) string {
	const named = 20
	n := map[string]int{}
	for _, p := range paths {
		n[topEntry(p)]++
	}
	var entries []string
	for e := range n {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b string) int { return cmp.Or(n[b]-n[a], cmp.Compare(a, b)) })
	var texts []string
	for _, e := range entries[:min(named, len(entries))] {
		texts = append(texts, fmt.Sprintf("%s %d", shownPath(e), n[e]))
	}
	if len(entries) > named {
		texts = append(texts, fmt.Sprintf("%d more", len(entries)-named))
	}
	return strings.Join(texts, ", ")
}
