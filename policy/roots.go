package policy

import (
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
)

// Scope is what the writable roots of one call follow from.
type Scope struct {
	Mode Mode
	// Root is the workspace, canonical (see Canonical). Needed.
	Root string
	// Temp is the session's temporary directory, writable in every mode.
	// Default: none.
	Temp string
	// Extra are directories that workspace-write may also change, such as a
	// cache. Default: none, since a shared cache can be poisoned.
	Extra []string
	// Worktree is set where Root is a linked work tree of git; workspace-write
	// may then change what commits need of its repository. Default: none.
	Worktree *Worktree
	// Protected replaces DefaultProtected. Default: nil, the default list.
	Protected []string
}

// Roots says what a call may change. The zero value allows nothing.
type Roots struct {
	// All is set in danger-full-access: nothing is refused.
	All bool
	// Dirs may be changed with all that is below them. They may be missing.
	Dirs []string
	// Devices may be written to: character devices that keep nothing. They may
	// be missing.
	Devices []string
	// Terminals are directories whose terminals may be opened and written to. A
	// backend that gives a command terminals of its own leaves these out.
	Terminals []string
	// Protected are files and trees below Dirs that must not change, absolute.
	Protected []string
	// Pinned are entries that must stay what they are, while what is below
	// them may change unless it is Protected.
	Pinned []string
}

// DefaultProtected are the paths below the workspace root that lead to code
// which runs outside of the sandbox, and the file that may tighten policy.
func DefaultProtected() []string {
	return []string{".git/hooks", ".git/config", ".git/commondir", ".git/gitdir", "dsh-run.yaml"}
}

// WritableRoots is the one place that says what a mode may write.
func WritableRoots(s Scope) Roots {
	if s.Mode == DangerFullAccess {
		return Roots{All: true}
	}
	r := Roots{Devices: slices.Clone(sharedDevices)}
	if s.Temp != "" {
		r.Dirs = append(r.Dirs, s.Temp)
	}
	if s.Mode != WorkspaceWrite {
		return r
	}
	r.Dirs = append(r.Dirs, s.Root)
	r.Dirs = append(r.Dirs, sharedTemp()...)
	r.Terminals = sharedTerminals()
	r.Dirs = append(r.Dirs, s.Extra...)
	protected := s.Protected
	if protected == nil {
		protected = DefaultProtected()
	}
	for _, p := range protected {
		r.Protected = append(r.Protected, filepath.Join(s.Root, filepath.FromSlash(p)))
	}
	r.Pinned = []string{filepath.Join(s.Root, ".git")}
	if s.Worktree != nil {
		r.Dirs = append(r.Dirs, s.Worktree.dirs()...)
		r.Protected = append(r.Protected, s.Worktree.protected(s.Root)...)
	}
	return r
}

// sharedDevices can be written to in every mode: they store nothing.
var sharedDevices = []string{
	"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx",
}

// sharedTerminals are where a command finds the other end of a terminal that
// it makes for itself.
func sharedTerminals() []string {
	if goruntime.GOOS == "linux" {
		return []string{"/dev/pts"}
	}
	return nil
}

// sharedTemp are the host's temporary directories, which workspace-write adds.
func sharedTemp() []string {
	switch goruntime.GOOS {
	case "linux":
		return []string{"/tmp", "/dev/shm"}
	case "windows":
		return nil
	default:
		return []string{canonicalOr("/tmp")}
	}
}

func canonicalOr(path string) string {
	if c, err := filepath.EvalSymlinks(path); err == nil {
		return c
	}
	return path
}

// Verdict is what Roots say of one path.
type Verdict uint8

// The verdicts. The zero value refuses.
const (
	Outside   Verdict = iota // in no writable directory
	Protected                // below a protected path, or a pinned entry itself
	Writable
)

// Judge says whether the canonical path may be changed. It compares spellings
// only: the caller resolves links first.
func (r Roots) Judge(path string) Verdict {
	if r.All {
		return Writable
	}
	if slices.Contains(r.Devices, path) {
		return Writable
	}
	if !slices.ContainsFunc(r.Dirs, func(dir string) bool { return Within(dir, path) }) {
		return Outside
	}
	if slices.Contains(r.Pinned, path) || slices.ContainsFunc(r.Protected, func(p string) bool { return Within(p, path) }) {
		return Protected
	}
	return Writable
}

// Within reports whether path is dir or lies below it, by spelling.
func Within(dir, path string) bool {
	if dir == path {
		return true
	}
	if !strings.HasSuffix(dir, string(filepath.Separator)) {
		dir += string(filepath.Separator)
	}
	return strings.HasPrefix(path, dir)
}

// RootError says why a directory cannot be a workspace.
type RootError struct {
	Root   string
	Reason string
}

func (e *RootError) Error() string { return fmt.Sprintf("workspace %q: %s", e.Root, e.Reason) }

// Canonical returns the workspace root that dir names: absolute, links
// followed by the file system, so that "link/.." is the directory in which a
// process would really run. A root that is missing, no directory, or the root
// of the file system is a *RootError.
func Canonical(dir string) (string, error) {
	if strings.ContainsRune(dir, 0) {
		return "", &RootError{dir, "the name has a NUL byte"}
	}
	path := dir
	if !filepath.IsAbs(path) {
		cwd, err := os.Getwd()
		if err != nil {
			return "", &RootError{dir, err.Error()}
		}
		path = cwd + string(filepath.Separator) + path
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", &RootError{dir, describePathError(err)}
	}
	info, err := os.Stat(resolved)
	switch {
	case err != nil:
		return "", &RootError{dir, describePathError(err)}
	case !info.IsDir():
		return "", &RootError{dir, "it is not a directory"}
	case filepath.Dir(resolved) == resolved:
		return "", &RootError{dir, "the root of the file system cannot be a workspace; name a directory below it"}
	}
	return resolved, nil
}

func describePathError(err error) string {
	switch {
	case os.IsNotExist(err):
		return "there is no such directory"
	case os.IsPermission(err):
		return "it cannot be entered: permission denied"
	default:
		return err.Error()
	}
}
