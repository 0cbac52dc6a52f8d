package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session/sessiontest"
	"github.com/dsh-run/dsh/tools"
)

// confined makes a call that runs change in the second layer of the fence.
func confined(t *testing.T, o *Options, mode policy.Mode, root string, change func() error) (by policy.Confinement, err error) {
	t.Helper()
	s := New(o)
	defer s.Close()
	r := tools.NewRegistry(&tools.Options{Mode: mode, Root: root})
	tools.Add(r, tools.Tool{Name: "change", Description: "changes"},
		func(ctx context.Context, call *tools.Call, _ struct{}) (string, error) {
			by, err = s.confine(ctx, call, change)
			return "", nil
		})
	if result := r.Call(t.Context(), tools.Request{Tool: "change"}); result.Error != nil {
		t.Fatal(result.Error)
	}
	return by, err
}

func roomOutside(t *testing.T) (root, outside string) {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "dsh-test-")
	sessiontest.Need(t, "vartmp", err == nil, "there is no /var/tmp to write to, which workspace-write leaves out")
	t.Cleanup(func() { os.RemoveAll(base) })
	root = filepath.Join(base, "work")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	return root, filepath.Join(base, "f")
}

func TestKernelRefusesWhatTheFirstLayerWouldMiss(t *testing.T) {
	root, outside := roomOutside(t)
	by, err := confined(t, nil, policy.WorkspaceWrite, root, func() error { return os.WriteFile(outside, []byte("x"), 0o600) })
	sessiontest.Need(t, "kernel", by.Backend == "landlock", "no kernel sandbox: "+by.Backend)
	if !errors.Is(err, fs.ErrPermission) {
		t.Fatalf("writing outside gave %v, want a refusal by the kernel", err)
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Fatal("the file was written")
	}
	inside := filepath.Join(root, "f")
	if _, err := confined(t, nil, policy.WorkspaceWrite, root, func() error { return os.WriteFile(inside, []byte("x"), 0o600) }); err != nil {
		t.Fatalf("writing inside gave %v", err)
	}
}

func TestRequireFullRefusesPartialEnforcement(t *testing.T) {
	root, _ := roomOutside(t)
	ran := false
	_, err := confined(t, &Options{RequireFull: true}, policy.WorkspaceWrite, root, func() error { ran = true; return nil })
	var typed *tools.Error
	if !errors.As(err, &typed) || typed.Code != tools.SandboxUnavailable || ran {
		t.Fatalf("got %v, ran %v; want %s", err, ran, tools.SandboxUnavailable)
	}
}

func TestRootThatCannotBeAWorkspaceRunsNothing(t *testing.T) {
	ran := false
	_, err := confined(t, nil, policy.WorkspaceWrite, "/", func() error { ran = true; return nil })
	if by := (policy.Confinement{}); err == nil || ran || by.Denied {
		t.Fatalf("got %v, ran %v", err, ran)
	}
}

func TestJudgeKnowsARootUnderAnotherName(t *testing.T) {
	root, _ := roomOutside(t)
	dir := filepath.Join(root, "real")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	alias := filepath.Join(root, "alias")
	if err := os.Symlink("real", alias); err != nil {
		sessiontest.Need(t, "symlinks", false, err.Error())
	}
	// A link stands in for a bind mount: the spelling differs, the object does
	// not.
	for _, c := range []struct {
		name  string
		roots policy.Roots
		path  string
		base  string
		want  policy.Verdict
	}{
		{"below a root", policy.Roots{Dirs: []string{dir}}, dir + "/a/b", dir, policy.Writable},
		{"beside it", policy.Roots{Dirs: []string{dir}}, root + "/other", root, policy.Outside},
		{"no roots", policy.Roots{}, dir, dir, policy.Outside},
		{"everything", policy.Roots{All: true}, "/etc/passwd", "/etc/passwd", policy.Writable},
		{"a protected directory", policy.Roots{Dirs: []string{root}, Protected: []string{dir}}, dir + "/x", dir, policy.Protected},
	} {
		if got := judge(c.roots, target{path: c.path, base: c.base}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
