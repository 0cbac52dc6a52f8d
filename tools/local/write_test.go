package local_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session/sessiontest"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

func TestWriteNeedsToHaveSeenWhatItOverwrites(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(b *bench)
	}{
		{"a new file that nobody looked for is made, with its directories", func(b *bench) {
			v := b.ok("write", object{"file_path": "new/dir/f", "content": "text\n"})
			b.has("new/dir/f", "text\n")
			if v["operation"] != "create" || v["path"] != b.path("new/dir/f") || !strings.Contains(v["diff"].(string), "+text") {
				b.t.Fatalf("value %v", v)
			}
		}},
		{"an existing file that was never read is not overwritten", func(b *bench) {
			b.put("f", "old")
			b.fails(local.NotObserved, "write", object{"file_path": "f", "content": "new"}, "read it first")
			b.has("f", "old")
		}},
		{"one that was read is", func(b *bench) {
			b.put("f", "old\n")
			b.ok("read", object{"file_path": "f"})
			v := b.ok("write", object{"file_path": "f", "content": "new\n"})
			b.has("f", "new\n")
			if v["operation"] != "overwrite" || !strings.Contains(v["diff"].(string), "-old\n+new\n") {
				b.t.Fatalf("value %v", v)
			}
		}},
		{"one that was read in part is not, and after the rest is", func(b *bench) {
			b.put("f", "1\n2\n3\n")
			b.ok("read", object{"file_path": "f", "limit": 2})
			b.fails(local.NotObserved, "write", object{"file_path": "f", "content": "new"}, "only 4 of its 6 bytes")
			b.ok("read", object{"file_path": "f", "offset": 3})
			b.ok("write", object{"file_path": "f", "content": "new"})
		}},
		{"one with a line that was cut is not, and after the rest of the line is", func(b *bench) {
			b.put("f", strings.Repeat("x", 3000)+"\n")
			b.ok("read", object{"file_path": "f"})
			b.fails(local.NotObserved, "write", object{"file_path": "f", "content": "new"}, "only 2000 of its 3001")
			b.ok("read", object{"file_path": "f", "byte_offset": 2000})
			b.ok("write", object{"file_path": "f", "content": "new"})
		}},
		{"one that changed since is stale", func(b *bench) {
			b.put("f", "old")
			b.ok("read", object{"file_path": "f"})
			b.put("f", "other")
			b.fails(local.StaleVersion, "write", object{"file_path": "f", "content": "new"}, "read it again")
			b.has("f", "other")
		}},
		{"one that changed with its size and times kept is stale", func(b *bench) {
			path := b.put("f", "aa\n")
			b.ok("read", object{"file_path": "f"})
			info, _ := os.Stat(path)
			b.put("f", "bb\n")
			os.Chtimes(path, info.ModTime(), info.ModTime())
			b.fails(local.StaleVersion, "write", object{"file_path": "f", "content": "cc\n"})
			b.has("f", "bb\n")
		}},
		{"one that was touched or copied is not stale", func(b *bench) {
			path := b.put("f", "old")
			b.ok("read", object{"file_path": "f"})
			os.Remove(path)
			b.put("f", "old")
			b.ok("write", object{"file_path": "f", "content": "new"})
		}},
		{"one that is gone since is stale", func(b *bench) {
			path := b.put("f", "old")
			b.ok("read", object{"file_path": "f"})
			os.Remove(path)
			b.fails(local.StaleVersion, "write", object{"file_path": "f", "content": "new"}, "gone")
			b.fails(local.NotFound, "read", object{"file_path": "f"})
			b.ok("write", object{"file_path": "f", "content": "new"})
		}},
		{"one that was absent and is there now is stale", func(b *bench) {
			b.fails(local.NotFound, "read", object{"file_path": "f"})
			b.put("f", "theirs")
			b.fails(local.StaleVersion, "write", object{"file_path": "f", "content": "mine"}, "is there now")
			b.has("f", "theirs")
		}},
		{"what was written has been seen", func(b *bench) {
			b.ok("write", object{"file_path": "f", "content": "1"})
			b.ok("write", object{"file_path": "f", "content": "2"})
			b.ok("edit", object{"file_path": "f", "old_string": "2", "new_string": "3"})
			b.ok("write", object{"file_path": "f", "content": "4"})
			b.has("f", "4")
		}},
		{"an empty file that was read can be overwritten", func(b *bench) {
			b.put("f", "")
			b.ok("read", object{"file_path": "f"})
			b.ok("write", object{"file_path": "f", "content": "x"})
		}},
		{"the same file under another spelling is the same file", func(b *bench) {
			b.put("d/f", "old")
			os.Symlink("d", b.path("l"))
			b.ok("read", object{"file_path": "l/f"})
			b.ok("write", object{"file_path": "./d//f", "content": "new"})
			b.has("d/f", "new")
		}},
		{"a hit of grep does not count as reading", func(b *bench) {
			b.put("f", "needle")
			b.call("grep", object{"pattern": "needle"})
			b.fails(local.NotObserved, "write", object{"file_path": "f", "content": "new"})
		}},
		{"content goes to disk byte for byte", func(b *bench) {
			content := "\u201cé\u201d \u2019 \u00a0 \u2014 \u200b\r\n$& $1 %s\\n no newline"
			b.ok("write", object{"file_path": "f", "content": content})
			b.has("f", content)
		}},
	} {
		t.Run(c.name, func(t *testing.T) { c.do(newBench(t, policy.WorkspaceWrite)) })
	}
}

func TestObservationsOutliveTheSetThatMadeThem(t *testing.T) {
	b := newBench(t, policy.WorkspaceWrite)
	b.put("f", "old")
	b.ok("read", object{"file_path": "f"})
	again := tools.NewRegistry(nil)
	set := local.New(nil)
	defer set.Close()
	for _, tool := range set.Tools() {
		again.Add(tool)
	}
	b.Registry = again
	b.ok("write", object{"file_path": "f", "content": "new"})
	b.has("f", "new")
}

func TestObservationsBelongToOneSession(t *testing.T) {
	a, b := newBench(t, policy.WorkspaceWrite), newBench(t, policy.WorkspaceWrite)
	path := a.put("f", "old")
	a.ok("read", object{"file_path": path})
	b.Registry = a.Registry
	r := b.call("write", object{"file_path": path, "content": "new"})
	if r.Error == nil || r.Error.Code != local.SandboxDenied {
		t.Fatalf("another session's workspace: %v", r.Error)
	}
	shared := filepath.Join(t.TempDir(), "f")
	os.WriteFile(shared, []byte("x"), 0o600)
	sessiontest.Need(t, "tmp", strings.HasPrefix(shared, "/tmp/"), "no directory that both may write")
	a.ok("read", object{"file_path": shared})
	b.fails(local.NotObserved, "write", object{"file_path": shared, "content": "new"})
}

func TestWriteKeepsWhatBelongsToTheFile(t *testing.T) {
	b := newBench(t, policy.WorkspaceWrite)
	b.put("real", "hello")
	os.Chmod(b.path("real"), os.ModeSetuid|0o751)
	os.Symlink("real", b.path("l1"))
	os.Symlink("l1", b.path("l2"))
	b.ok("read", object{"file_path": "l2"})
	b.ok("write", object{"file_path": "l2", "content": "changed"})
	b.has("real", "changed")
	for _, link := range []string{"l1", "l2"} {
		if info, err := os.Lstat(b.path(link)); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Errorf("%s is no link any more", link)
		}
	}
	if info, _ := os.Stat(b.path("real")); info.Mode().Perm() != 0o751 || info.Mode()&os.ModeSetuid == 0 {
		t.Errorf("mode is %v", info.Mode())
	}
	b.noLitter("l1", "l2", "real")
}

// noLitter checks that the workspace holds nothing but the names.
func (b *bench) noLitter(names ...string) {
	b.t.Helper()
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(names) {
		b.t.Errorf("the workspace holds %v, want %v", got, names)
	}
}

func TestWriteRefusesWhatReplacingWouldLose(t *testing.T) {
	sessiontest.Need(t, "unix", goruntime.GOOS != "windows", "owners and links are another matter there")
	b := newBench(t, policy.WorkspaceWrite)
	b.put("linked", "x")
	os.Link(b.path("linked"), b.path("other"))
	b.ok("read", object{"file_path": "linked"})
	b.fails(local.PermissionDenied, "write", object{"file_path": "linked", "content": "y"}, "2 hard links")
	b.has("other", "x")
	b.put("d/f", "x")
	b.ok("read", object{"file_path": "d/f"})
	if os.Geteuid() == 0 {
		os.Chown(b.path("d/f"), 65534, -1)
		b.fails(local.PermissionDenied, "write", object{"file_path": "d/f", "content": "y"}, "belongs to user 65534")
		b.has("d/f", "x")
		return
	}
	os.Chmod(b.path("d"), 0o555)
	defer os.Chmod(b.path("d"), 0o755)
	b.fails(local.PermissionDenied, "write", object{"file_path": "d/f", "content": "y"}, "needs a directory that can be written")
	b.fails(local.PermissionDenied, "write", object{"file_path": "d/new", "content": "y"})
	os.Chmod(b.path("d"), 0o755)
	os.Chmod(b.path("d/f"), 0o444)
	b.fails(local.PermissionDenied, "write", object{"file_path": "d/f", "content": "y"}, "read-only")
}

func TestFailedWriteLeavesNothingBehind(t *testing.T) {
	b := newBench(t, policy.WorkspaceWrite)
	b.put("file", "x")
	b.put("dir/f", "x")
	for _, c := range []struct {
		name, path string
		code       tools.Code
		text       string
	}{
		{"a name that is too long", "made/for/it/" + strings.Repeat("n", 300), local.IOError, "name too long"},
		{"below a file", "file/x", local.NotDirectory, "not a directory"},
		{"onto a directory", "dir", local.NotRegularFile, "directory"},
		{"a name that ends like a directory", "dir/f/", local.NotDirectory, "not a directory"},
		{"a NUL byte", "a\x00b", tools.InvalidArgs, "NUL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &bench{Registry: b.Registry, t: t, set: b.set, session: b.session, dir: b.dir}
			b.fails(c.code, "write", object{"file_path": c.path, "content": "y"}, c.text)
			b.noLitter("dir", "file")
		})
	}
}

func TestFullDiskKeepsTheOldFile(t *testing.T) {
	b := newBench(t, policy.WorkspaceWrite)
	small := mountSmall(t, b.path("small"))
	if err := os.WriteFile(filepath.Join(small, "f"), []byte("ten bytes\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.ok("read", object{"file_path": "small/f"})
	b.fails(local.IOError, "write", object{"file_path": "small/f", "content": strings.Repeat("x", 1<<20)}, "no space left")
	b.has("small/f", "ten bytes\n")
	if entries, _ := os.ReadDir(small); len(entries) != 1 {
		t.Errorf("left %v", entries)
	}
}

func TestFenceDecidesOnTheTarget(t *testing.T) {
	for _, c := range []struct {
		name string
		mode policy.Mode
		path func(b *bench) string
		may  bool
	}{
		{"read-only: nothing in the workspace", policy.ReadOnly, func(b *bench) string { return "f" }, false},
		{"read-only: the session's temporary directory", policy.ReadOnly, func(b *bench) string { return filepath.Join(b.session.Log().TempDir(), "f") }, true},
		{"workspace-write: the workspace", policy.WorkspaceWrite, func(b *bench) string { return "f" }, true},
		{"workspace-write: nothing beside it", policy.WorkspaceWrite, func(b *bench) string { return "../f" }, false},
		{"workspace-write: through a link that leads out", policy.WorkspaceWrite, func(b *bench) string {
			os.Symlink(filepath.Dir(b.dir), b.path("out"))
			return "out/f"
		}, false},
		{"workspace-write: through a dangling link that leads out", policy.WorkspaceWrite, func(b *bench) string {
			os.Symlink(filepath.Join(filepath.Dir(b.dir), "no", "f"), b.path("out"))
			return "out"
		}, false},
		{"workspace-write: out and in again", policy.WorkspaceWrite, func(b *bench) string { return "../work/f" }, true},
		{"workspace-write: a directory link and ..", policy.WorkspaceWrite, func(b *bench) string {
			os.Mkdir(filepath.Join(filepath.Dir(b.dir), "sub"), 0o755)
			os.Symlink("../sub", b.path("d"))
			return b.dir + "/d/../f"
		}, false},
		{"workspace-write: git hooks", policy.WorkspaceWrite, func(b *bench) string { return ".git/hooks/pre-commit" }, false},
		{"workspace-write: git configuration", policy.WorkspaceWrite, func(b *bench) string { return ".git/config" }, false},
		{"workspace-write: .git itself", policy.WorkspaceWrite, func(b *bench) string { return ".git" }, false},
		{"workspace-write: the rest of .git", policy.WorkspaceWrite, func(b *bench) string { return ".git/info/exclude" }, true},
		{"workspace-write: its own configuration", policy.WorkspaceWrite, func(b *bench) string { return "dsh-run.yaml" }, false},
		{"workspace-write: git hooks through a link", policy.WorkspaceWrite, func(b *bench) string {
			os.MkdirAll(b.path(".git/hooks"), 0o755)
			os.Symlink(".git/hooks", b.path("h"))
			return "h/pre-commit"
		}, false},
		{"workspace-write: a nested repository's configuration", policy.WorkspaceWrite, func(b *bench) string { return "sub/.git/config" }, true},
		{"danger-full-access: anything", policy.DangerFullAccess, func(b *bench) string { return "../f" }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.mode)
			path := c.path(b)
			args := object{"file_path": path, "content": "x"}
			if c.may {
				v := b.ok("write", args)
				if got := v["sandbox"].(map[string]any); got["mode"] != c.mode.String() || got["denied"] != false {
					t.Errorf("sandbox %v", got)
				}
				return
			}
			r := b.fails(local.SandboxDenied, "write", args, "[sandbox: file access denied under "+c.mode.String()+" mode]\n[to go on:")
			by := r.Meta.Confinement
			if by == nil || !by.Denied || by.Op != "write" || by.Confidence != policy.ByPath || !filepath.IsAbs(by.Path) {
				t.Errorf("confinement %+v", by)
			}
			var details policy.Confinement
			if err := json.Unmarshal(r.Error.Details, &details); err != nil || !details.Denied {
				t.Errorf("details %s: %v", r.Error.Details, err)
			}
		})
	}
}

func TestNeverGivesNoHint(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	if err := b.session.SetApproval(policy.Never, "test"); err != nil {
		t.Fatal(err)
	}
	r := b.fails(local.SandboxDenied, "write", object{"file_path": "f", "content": "x"}, "[sandbox:")
	if strings.Contains(r.Error.Message, "sandbox_permissions") {
		t.Fatalf("message %q", r.Error.Message)
	}
}

func TestWideningRunsThisCallOnly(t *testing.T) {
	b := newBench(t, policy.ReadOnly)
	var asked []policy.Question
	b.Registry = tools.NewRegistry(&tools.Options{Approvals: policy.NewApprovals(0, policy.Answerer{Name: "stub",
		Answer: func(_ context.Context, q policy.Question) (policy.Outcome, error) {
			asked = append(asked, q)
			return policy.AllowedOnce, nil
		}})})
	for _, tool := range b.set.Tools() {
		b.Add(tool)
	}
	plain := object{"file_path": "f", "content": "x"}
	denied := b.fails(local.SandboxDenied, "write", plain)
	v := b.ok("write", object{"file_path": "f", "content": "x", "sandbox_permissions": "workspace-write", "justification": "the task needs it"})
	b.has("f", "x")
	if got := v["sandbox"].(map[string]any); got["mode"] != "workspace-write" {
		t.Errorf("sandbox %v", got)
	}
	if len(asked) != 1 || asked[0].Denied != denied.Meta.CallID || asked[0].To != policy.WorkspaceWrite {
		t.Errorf("asked %+v", asked)
	}
	b.fails(local.SandboxDenied, "edit", object{"file_path": "f", "old_string": "x", "new_string": "y"})
	b.fails(tools.InvalidArgs, "write", object{"file_path": "g", "content": "x", "sandbox_permissions": "workspace-write"}, "without justification")
}

func TestDirectorySwappedForALinkNeverLeadsOut(t *testing.T) {
	b := newBench(t, policy.WorkspaceWrite)
	secret := filepath.Join(filepath.Dir(b.dir), "outside")
	os.Mkdir(secret, 0o755)
	os.WriteFile(filepath.Join(secret, "secret"), []byte("secret"), 0o644)
	stop := swap(t, b.path("d"), secret)
	defer stop()
	for i := range 400 {
		r := b.call("write", object{"file_path": fmt.Sprintf("d/f%d", i), "content": "x"})
		if r.Error != nil && r.Error.Code != local.SandboxDenied && r.Error.Code != local.IOError && r.Error.Code != local.NotFound && r.Error.Code != local.NotDirectory {
			t.Fatalf("unexpected %v", r.Error)
		}
	}
	entries, err := os.ReadDir(secret)
	if err != nil || len(entries) != 1 {
		t.Fatalf("outside holds %v (%v), want only what was there", entries, err)
	}
}

// swap makes d a directory and a link to outside in turn until stopped.
func swap(t *testing.T, d, outside string) (stop func()) {
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			os.RemoveAll(d)
			os.Symlink(outside, d)
			os.Remove(d)
			os.Mkdir(d, 0o755)
		}
	})
	return func() { close(done); wg.Wait() }
}

func TestOneOfManyCreatorsWins(t *testing.T) {
	b := newBench(t, policy.WorkspaceWrite)
	var wg sync.WaitGroup
	results := make([]tools.Result, 16)
	for i := range results {
		raw, _ := json.Marshal(object{"file_path": "f", "content": fmt.Sprint(i)})
		wg.Go(func() {
			results[i] = b.Call(t.Context(), tools.Request{Tool: "write", Args: raw, Session: b.session})
		})
	}
	wg.Wait()
	created := 0
	for _, r := range results {
		if r.Error == nil && strings.Contains(string(r.Value), `"operation":"create"`) {
			created++
		}
	}
	if created != 1 {
		t.Fatalf("%d calls made the file", created)
	}
}

func TestCancelledWriteSaysThatNothingChanged(t *testing.T) {
	b := newBench(t, policy.WorkspaceWrite)
	b.put("f", "old")
	b.ok("read", object{"file_path": "f"})
	ctx, cancel := context.WithCancel(t.Context())
	b.Wrap("cancels", func(next tools.Body) tools.Body {
		return func(ctx context.Context, call *tools.Call) (json.RawMessage, error) {
			cancel()
			return next(ctx, call)
		}
	})
	// The guards come after the wrapper, so the call ends before its body.
	r := b.callAs(ctx, policy.Direct, "write", object{"file_path": "f", "content": "new"})
	if r.Error == nil || r.Error.Code != tools.AbortedBeforeDispatch && r.Error.Code != local.FSAborted {
		t.Fatalf("error %v", r.Error)
	}
	b.has("f", "old")
	b.noLitter("f")
}
