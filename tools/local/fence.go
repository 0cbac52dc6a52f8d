package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/sandbox"
	"github.com/dsh-run/dsh/tools"
)

// pathBackend confines by the judgement of the path and by descriptors that
// follow no link, where the kernel has nothing better.
const pathBackend = "path"

// admit refuses a change of t that the call's mode does not allow.
func (s *Set) admit(call *tools.Call, t target) error {
	roots := policy.WritableRoots(s.scope(call))
	if judge(roots, t) == policy.Writable {
		return nil
	}
	c := pathConfinement(call.Mode)
	c.Denied, c.Op, c.Path, c.Confidence = true, "write", shownPath(t.path), policy.ByPath
	call.Confine(c)
	return denial(call, c, t, judge(roots, t) == policy.Protected)
}

// denial is the friendly answer to a change outside of the fence.
func denial(call *tools.Call, c policy.Confinement, t target, protected bool) error {
	lines := []string{shownPath(t.path) + " was not changed: it lies outside of what this call may write"}
	if protected {
		lines[0] = shownPath(t.path) + " was not changed: it is protected, since what stands there would act outside of the sandbox"
	}
	lines = append(lines, c.Marker())
	if hint := c.Hint(call.Approval); hint != "" {
		lines = append(lines, hint)
	}
	return failWith(SandboxDenied, c, "%s", strings.Join(lines, "\n"))
}

func pathConfinement(mode policy.Mode) policy.Confinement {
	return policy.Confinement{Mode: mode, Backend: pathBackend, Enforcement: policy.Full, VCSHooks: policy.HooksEnforced}
}

// judge says whether t may be changed: by its spelling, and where an ancestor
// of it is a root or a protected path under another name, by what that is.
func judge(roots policy.Roots, t target) policy.Verdict {
	if roots.All {
		return policy.Writable
	}
	verdict := roots.Judge(t.path)
	if verdict == policy.Outside {
		if alias := respell(roots.Dirs, t); alias != "" {
			verdict = roots.Judge(alias)
		}
	}
	if verdict == policy.Writable && (respell(roots.Protected, t) != "" || isOneOf(roots.Pinned, t.path) || foldedWithin(roots, t.path)) {
		return policy.Protected
	}
	return verdict
}

// respell returns t.path with the ancestor that is one of dirs, or t itself,
// spelled as dirs have it; empty when there is none.
func respell(dirs []string, t target) string {
	for at, rest := t.base, tail(t); ; {
		info, err := os.Lstat(at)
		for _, dir := range dirs {
			if is, dirErr := os.Lstat(dir); err == nil && dirErr == nil && os.SameFile(info, is) {
				return filepath.Join(dir, rest)
			}
		}
		parent := filepath.Dir(at)
		if parent == at {
			return ""
		}
		at, rest = parent, filepath.Join(filepath.Base(at), rest)
	}
}

// tail is what of t's path lies below its base.
func tail(t target) string {
	rest, err := filepath.Rel(t.base, t.path)
	if err != nil {
		panic("local: a target's base is not its ancestor")
	}
	return rest
}

func isOneOf(paths []string, path string) bool {
	info, err := os.Lstat(path)
	return err == nil && slices.ContainsFunc(paths, func(p string) bool {
		is, err := os.Lstat(p)
		return err == nil && os.SameFile(info, is)
	})
}

// foldedWithin finds a protected path that is missing, and so has nothing to
// compare with, where the file system may ignore the case of names.
func foldedWithin(roots policy.Roots, path string) bool {
	if goruntime.GOOS == "linux" {
		return false
	}
	return slices.ContainsFunc(roots.Protected, func(p string) bool {
		return policy.Within(strings.ToLower(p), strings.ToLower(path))
	})
}

// confine runs change, which the call was admitted to, on a thread that the
// kernel confines, and says what confined it. Where there is no such thread,
// change relies on the descriptors that it opened.
func (s *Set) confine(ctx context.Context, call *tools.Call, change func() error) (policy.Confinement, error) {
	scope := s.scope(call)
	if scope.Mode >= policy.DangerFullAccess {
		return policy.Unconfined(), change()
	}
	p := sandbox.Policy{Scope: scope, RequireFull: s.options.RequireFull}
	if call.Session != nil {
		p.SessionID = call.Session.Log().ID()
	}
	began := false
	c, err := sandbox.Do(ctx, p, func() error {
		began = true
		return change()
	})
	var unavailable *sandbox.UnavailableError
	switch {
	case began:
		c.VCSHooks = policy.HooksEnforced
		return c, err
	case errors.As(err, &unavailable) && s.options.RequireFull:
		return policy.Confinement{}, fail(tools.SandboxUnavailable, "%v", err)
	case errors.As(err, &unavailable):
		return pathConfinement(scope.Mode), change()
	case ctx.Err() == nil:
		return policy.Confinement{}, fail(tools.ToolFailed, "nothing was changed: %v", err)
	}
	return policy.Confinement{}, err
}
