package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsh-run/dsh/tools"
)

// target is what a path leads to when every link has been followed.
type target struct {
	path string      // canonical
	info fs.FileInfo // nil when nothing is there
	base string      // canonical path of the deepest existing ancestor, or path
}

func (t target) exists() bool { return t.info != nil }

// maxLinks is how many links one path may lead through, as in Linux.
const maxLinks = 40

// resolve follows path from root, which is canonical, the way the kernel does:
// links first, then "..". What is missing at the end is kept as it is spelled.
// An existing entry whose name differs from the given one only in its Unicode
// form, or is written with \xNN for bytes that are not UTF-8, is found too.
func resolve(root, path string) (target, error) {
	switch {
	case path == "":
		return target{}, fail(tools.InvalidArgs, "the path is empty")
	case strings.ContainsRune(path, 0):
		return target{}, fail(tools.InvalidArgs, "%s: a path cannot hold a NUL byte", shownPath(path))
	}
	full := filepath.FromSlash(path)
	if !filepath.IsAbs(full) {
		full = root + string(filepath.Separator) + full
	}
	r := resolver{asked: path, at: volumeRoot(full), rest: components(full)}
	return r.run(strings.HasSuffix(full, string(filepath.Separator)))
}

func volumeRoot(path string) string {
	return filepath.VolumeName(path) + string(filepath.Separator)
}

// components are the names in an absolute path.
func components(path string) []string {
	path = path[len(filepath.VolumeName(path)):]
	names := strings.Split(path, string(filepath.Separator))
	return slices.DeleteFunc(names, func(n string) bool { return n == "" || n == "." })
}

type resolver struct {
	asked string
	at    string   // canonical so far
	rest  []string // still to walk
	links int
}

func (r *resolver) run(wantDir bool) (target, error) {
	info, err := os.Lstat(r.at)
	for err == nil && len(r.rest) > 0 {
		name := r.rest[0]
		r.rest = r.rest[1:]
		if name == ".." {
			r.at = filepath.Dir(r.at)
			info, err = os.Lstat(r.at)
			continue
		}
		if !info.IsDir() {
			return target{}, fail(NotDirectory, "%s: %s is not a directory", shownPath(r.asked), shownPath(r.at))
		}
		next := filepath.Join(r.at, name)
		entry, entryErr := os.Lstat(next)
		switch {
		case errors.Is(entryErr, fs.ErrNotExist):
			if other, ok := twin(r.at, name); ok {
				r.rest = append([]string{other}, r.rest...)
				continue
			}
			return r.missing(name)
		case entryErr != nil:
			err = entryErr
		case entry.Mode()&fs.ModeSymlink != 0:
			info, err = r.follow(next, info)
		default:
			r.at, info = next, entry
		}
	}
	if err != nil {
		return target{}, osFailure(r.asked, err)
	}
	if wantDir && !info.IsDir() {
		return target{}, fail(NotDirectory, "%s: not a directory", shownPath(r.asked))
	}
	return target{path: r.at, info: info, base: r.at}, nil
}

// follow puts what the link names in front of the rest.
func (r *resolver) follow(link string, here fs.FileInfo) (fs.FileInfo, error) {
	if r.links++; r.links > maxLinks {
		return nil, fail(IOError, "%s: too many levels of symbolic links", shownPath(r.asked))
	}
	to, err := os.Readlink(link)
	if err != nil {
		return nil, err
	}
	if filepath.IsAbs(to) {
		r.at = volumeRoot(to)
		here, err = os.Lstat(r.at)
	}
	r.rest = append(components(to), r.rest...)
	return here, err
}

// missing ends the walk at a name that is not there.
func (r *resolver) missing(name string) (target, error) {
	if slices.Contains(r.rest, "..") {
		return target{}, fail(NotFound, "%s: there is no %s", shownPath(r.asked), shownPath(filepath.Join(r.at, name)))
	}
	full := filepath.Join(append([]string{r.at, name}, r.rest...)...)
	return target{path: full, base: r.at}, nil
}

// notFound is the error for a target that is not there.
func notFound(asked string, t target) error {
	if strings.HasPrefix(asked, "~/") {
		return fail(NotFound, "%s: there is no such file; ~ is not expanded, give an absolute path", shownPath(asked))
	}
	if t.base != filepath.Dir(t.path) {
		return fail(NotFound, "%s: there is no such file; %s is the deepest directory of that path that exists", shownPath(t.path), shownPath(t.base))
	}
	return fail(NotFound, "%s: there is no such file", shownPath(t.path))
}

// irregular says why something that is no regular file cannot be used as one.
func irregular(path string, mode fs.FileMode) error {
	what := "a special file"
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		return fail(NotRegularFile, "%s is a directory; use glob to list what is in it", shownPath(path))
	case mode&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return fail(NotRegularFile, "%s is %s, not a regular file", shownPath(path), what)
}
