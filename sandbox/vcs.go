package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/dsh-run/dsh/policy"
)

// A command that may write the workspace may plant what git, or this module,
// would later act on outside of the sandbox. Where a backend cannot hold that
// during the run, it is compared with what it was before and taken back. No
// program is started for that, least of all git.

// vcsGuard is the comparison around one run.
type vcsGuard struct {
	watch  *vcsWatch
	before *vcsState
}

// vcsWatch is one workspace while commands run in it. Runs that overlap share
// what was there before the first of them, so that what one of them plants is
// never taken for what was there before another.
type vcsWatch struct {
	root  string
	dirs  []string // writable ones, in which directories of git are watched
	files []string // protected ones that do not belong to git, relative

	mu     sync.Mutex // held while comparing and undoing
	runs   int
	before *vcsState
	last   *vcsState // what was read last, to be read again only where it changed
}

// vcsWatches are those of this process, by what they watch.
var vcsWatches = struct {
	sync.Mutex
	known map[string]*vcsWatch
}{known: map[string]*vcsWatch{}}

// mostWatches bounds the workspaces whose last state is kept.
const mostWatches = 64

// guardVCS remembers what is there before a run that may write what roots say,
// root among them.
func guardVCS(root string, roots policy.Roots) (*vcsGuard, error) {
	w := watchOf(root, roots)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == 0 {
		now, err := w.look()
		if err != nil {
			return nil, fmt.Errorf("remember what %s holds before the run: %w", root, err)
		}
		w.before, w.last = now, now
	}
	w.runs++
	return &vcsGuard{w, w.before}, nil
}

func watchOf(root string, roots policy.Roots) *vcsWatch {
	var files []string
	for _, path := range roots.Protected {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) && rel != "." && !isGit(rel) {
			files = append(files, rel)
		}
	}
	key := strings.Join(slices.Concat([]string{root}, files, roots.Dirs), "\x00")
	vcsWatches.Lock()
	defer vcsWatches.Unlock()
	w := vcsWatches.known[key]
	if w == nil {
		forgetWatches()
		w = &vcsWatch{root: root, dirs: slices.Clone(roots.Dirs), files: files}
		vcsWatches.known[key] = w
	}
	return w
}

// forgetWatches drops those without runs when there are too many.
func forgetWatches() {
	for key, w := range vcsWatches.known {
		if len(vcsWatches.known) < mostWatches {
			return
		}
		if w.mu.TryLock() {
			if w.runs == 0 {
				delete(vcsWatches.known, key)
			}
			w.mu.Unlock()
		}
	}
}

func isGit(rel string) bool {
	return rel == gitName || strings.HasPrefix(rel, gitName+string(filepath.Separator))
}

const gitName = ".git"

// drop ends the guard of a run that did not begin.
func (g *vcsGuard) drop() {
	g.watch.mu.Lock()
	defer g.watch.mu.Unlock()
	g.watch.runs--
}

// check takes back what was planted. It is called once, after the processes of
// the run have ended. An error means that something may be left.
func (g *vcsGuard) check() ([]policy.Undone, error) {
	w := g.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs--
	u := &undoing{root: w.root}
	err := u.undo(w, g.before)
	return u.done, err
}

// look reads the present state.
func (w *vcsWatch) look() (*vcsState, error) {
	dir, err := os.OpenRoot(w.root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	last := w.last
	if last == nil {
		last = &vcsState{}
	}
	s := &vcsState{git: readEntry(dir, gitName, last.git), bare: isRepository(dir)}
	for i, name := range w.files {
		s.files = append(s.files, readEntry(dir, name, at(last.files, i)))
	}
	for i, path := range gitDirs(w.root, w.dirs, s) {
		var was gitDirState
		if i < len(last.dirs) && last.dirs[i].path == path {
			was = last.dirs[i]
		}
		now, err := readGitDir(path, was)
		if err != nil {
			return nil, err
		}
		s.dirs = append(s.dirs, now)
	}
	return s, nil
}

func at(list []entryState, i int) entryState {
	if i < len(list) {
		return list[i]
	}
	return entryState{}
}

// vcsState is what git would act on in a workspace.
type vcsState struct {
	git   entryState // the entry .git of the root
	bare  bool       // the root is a repository itself
	files []entryState
	dirs  []gitDirState
}

// gitDirState is what git would act on in one of its directories.
type gitDirState struct {
	path      string
	hooksLink entryState // the entry hooks itself
	hooks     map[string]entryState
	config    [2]entryState // as configNames
	leads     [2]entryState // as leadNames
}

// configNames are the files of configuration in a directory of git, leadNames
// those that lead to other directories.
var (
	configNames = [2]string{"config", "config.worktree"}
	leadNames   = [2]string{"commondir", "gitdir"}
)

const hooksName = "hooks"

func readGitDir(path string, last gitDirState) (gitDirState, error) {
	s := gitDirState{path: path}
	dir, err := os.OpenRoot(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return s, nil
		}
		return s, err
	}
	defer dir.Close()
	for i, name := range configNames {
		s.config[i] = readEntry(dir, name, last.config[i])
	}
	for i, name := range leadNames {
		s.leads[i] = readEntry(dir, name, last.leads[i])
	}
	s.hooksLink = readEntry(dir, hooksName, last.hooksLink)
	s.hooks, err = readHooks(dir, last.hooks)
	return s, err
}

// mostHooks bounds what is read in a directory of hooks.
const mostHooks = 4096

var errManyHooks = fmt.Errorf("there are more than %d hooks", mostHooks)

// readHooks reads all entries but the samples, which git does not run.
func readHooks(dir *os.Root, last map[string]entryState) (map[string]entryState, error) {
	hooks, err := dir.OpenRoot(hooksName)
	if err != nil {
		return nil, nil // missing, no directory, or not inside: nothing can be written there
	}
	defer hooks.Close()
	list, err := hooks.Open(".")
	if err != nil {
		return nil, err
	}
	defer list.Close()
	names, err := list.Readdirnames(mostHooks + 64)
	if len(names) > mostHooks {
		return nil, errManyHooks
	}
	found := map[string]entryState{}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sample") {
			found[name] = readEntry(hooks, name, last[name])
		}
	}
	if err != nil && len(names) == 0 {
		err = nil // the end
	}
	return found, err
}

// gitDirs are the directories of git that a workspace uses and that are
// writable: where a command cannot write, nothing is planted.
func gitDirs(root string, writable []string, s *vcsState) []string {
	var dirs []string
	if s.bare {
		// Git takes it for one when .git is none, whatever .git is now.
		dirs = append(dirs, root)
	}
	switch s.git.kind {
	case entryMissing:
	case entryRegular:
		if target, ok := strings.CutPrefix(strings.TrimRight(string(s.git.content), "\r\n"), "gitdir: "); ok {
			dirs = append(dirs, insideOf(writable, root, target)...)
		}
	default:
		dirs = append(dirs, insideOf(writable, root, gitName)...)
	}
	for _, dir := range dirs {
		if text, err := os.ReadFile(filepath.Join(dir, leadNames[0])); err == nil && len(text) < maxConfig {
			for _, common := range insideOf(writable, dir, strings.TrimRight(string(text), "\r\n")) {
				if !slices.Contains(dirs, common) {
					dirs = append(dirs, common)
				}
			}
		}
	}
	return dirs
}

// insideOf resolves path from a directory and returns it if it is in one of
// dirs.
func insideOf(dirs []string, from, path string) []string {
	real := resolvePath(from, path)
	if slices.ContainsFunc(dirs, func(dir string) bool { return policy.Within(dir, real) }) {
		return []string{real}
	}
	return nil
}

// isRepository reports what git takes for a repository without a work tree.
func isRepository(dir *os.Root) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := dir.Lstat(name); err != nil {
			return false
		}
	}
	return true
}
