package dsh

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// logPlace is the guard that refuses calls which could change their own log.
func logPlace(extra []string) tools.Guard {
	return func(_ context.Context, call tools.Call) error {
		if !call.Confined || call.Session == nil {
			return nil
		}
		scope := call.Scope()
		scope.Extra = extra
		return checkLogPlace(call.Session.Log().Path(), scope)
	}
}

// checkLogPlace says whether what scope allows reaches the log at path or what
// belongs to it. danger-full-access reaches everything, by choice.
func checkLogPlace(path string, scope policy.Scope) error {
	roots := policy.WritableRoots(scope)
	if path == "" || roots.All {
		return nil
	}
	for _, place := range places(path) {
		if i := slices.IndexFunc(roots.Dirs, func(dir string) bool { return policy.Within(dir, place) }); i >= 0 {
			return &LogPlaceError{Log: path, Root: roots.Dirs[i], Mode: scope.Mode}
		}
	}
	return nil
}

// places are the names of the log and its folder, by spelling and with links
// followed.
func places(path string) []string {
	list := []string{path, session.Folder(path)}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		resolved := filepath.Join(dir, filepath.Base(path))
		list = append(list, resolved, session.Folder(resolved))
	}
	return list
}
