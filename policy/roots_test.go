package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsh-run/dsh/policy"
)

func TestRootsJudge(t *testing.T) {
	temp := filepath.FromSlash("/state/s.d/tmp")
	for _, c := range []struct {
		mode policy.Mode
		path string
		want policy.Verdict
	}{
		{policy.ReadOnly, "/w/a", policy.Outside},
		{policy.ReadOnly, "/state/s.d/tmp/x", policy.Writable},
		{policy.ReadOnly, "/state/s.d/tmp", policy.Writable},
		{policy.ReadOnly, "/state/s.d/tmpx", policy.Outside},
		{policy.ReadOnly, "/state/s.d/blobs/x", policy.Outside},
		{policy.WorkspaceWrite, "/w", policy.Writable},
		{policy.WorkspaceWrite, "/w/a/b", policy.Writable},
		{policy.WorkspaceWrite, "/w2/a", policy.Outside},
		{policy.WorkspaceWrite, "/etc/passwd", policy.Outside},
		{policy.WorkspaceWrite, "/w/.git", policy.Protected},
		{policy.WorkspaceWrite, "/w/.git/config", policy.Protected},
		{policy.WorkspaceWrite, "/w/.git/hooks/pre-commit", policy.Protected},
		{policy.WorkspaceWrite, "/w/.git/HEAD", policy.Writable},
		{policy.WorkspaceWrite, "/w/dsh-run.yaml", policy.Protected},
		{policy.WorkspaceWrite, "/w/sub/dsh-run.yaml", policy.Writable},
		{policy.WorkspaceWrite, "/cache/x", policy.Writable},
		{policy.ReadOnly, "/cache/x", policy.Outside},
		{policy.DangerFullAccess, "/etc/passwd", policy.Writable},
	} {
		roots := policy.WritableRoots(policy.Scope{Mode: c.mode, Root: filepath.FromSlash("/w"), Temp: temp, Extra: []string{filepath.FromSlash("/cache")}})
		if got := roots.Judge(filepath.FromSlash(c.path)); got != c.want {
			t.Errorf("%s: %s is judged %d, want %d", c.mode, c.path, got, c.want)
		}
	}
}

func TestCanonicalFollowsTheFileSystem(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"real/inner", "other"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(base, "real", "inner"), filepath.Join(base, "other", "link")); err != nil {
		t.Fatal(err)
	}
	sep := string(filepath.Separator)
	got, err := policy.Canonical(filepath.Join(base, "other") + sep + "link" + sep + "..")
	if want := filepath.Join(base, "real"); err != nil || got != want {
		t.Errorf("link/.. is %q, %v; a process would run in %q", got, err, want)
	}
}

func TestCanonicalRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below"), filepath.Join(filepath.Dir(file), "missing"), "a\x00b", filepath.VolumeName(file) + string(filepath.Separator)} {
		_, err := policy.Canonical(dir)
		if bad := (*policy.RootError)(nil); !errors.As(err, &bad) {
			t.Errorf("%q gave %v, want a RootError", dir, err)
		}
	}
}
