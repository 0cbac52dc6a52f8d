package dsh

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// reach knows what the calls of a session must not be able to change. No
// sandbox can take a file out of a writable directory.
type reach struct {
	extra []string // directories that workspace-write adds
	files []string
	log   []string // the log and its folder
}

// guard refuses calls that could change one of the files.
func (r *reach) guard(_ context.Context, call tools.Call) error {
	if !call.Confined || call.Session == nil {
		return nil
	}
	return r.admit(call.Scope())
}

// admit is check with the directories that workspace-write adds.
func (r *reach) admit(scope policy.Scope) error {
	scope.Extra = r.extra
	return r.check(scope)
}

// check says whether what scope allows reaches one of the files.
// danger-full-access reaches everything, by choice.
func (r *reach) check(scope policy.Scope) error {
	roots := policy.WritableRoots(scope)
	if roots.All {
		return nil
	}
	for i, file := range append(slices.Clone(r.log), r.files...) {
		if dir, ok := reached(roots, file); ok {
			return &ReachError{File: file, Log: i < len(r.log), Root: dir, Mode: scope.Mode}
		}
	}
	return nil
}

// reached returns the writable directory that holds file.
func reached(roots policy.Roots, file string) (string, bool) {
	for _, place := range spellings(file) {
		if i := slices.IndexFunc(roots.Dirs, func(dir string) bool { return policy.Within(dir, place) }); i >= 0 {
			return roots.Dirs[i], true
		}
	}
	return "", false
}

// keepLog adds a log and its folder; a log without a path is out of reach.
func (r *reach) keepLog(path string) {
	if path != "" {
		r.log = append(r.log, path, session.Folder(path))
	}
}

// spellings are the names of a file: as it is written, and with the links of
// its directory followed.
func spellings(file string) []string {
	list := []string{file}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(file)); err == nil {
		list = append(list, filepath.Join(dir, filepath.Base(file)))
	}
	if resolved, err := filepath.EvalSymlinks(file); err == nil {
		list = append(list, resolved)
	}
	return list
}
