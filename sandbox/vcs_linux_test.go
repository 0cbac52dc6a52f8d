//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsh-run/dsh/policy"
)

// repository is a workspace with a repository that has one commit, and a
// program outside that leaves a mark when something runs it.
type repository struct {
	place
	t    *testing.T
	evil string
	mark string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	needProgram(t, "git")
	r := &repository{place: newPlace(t), t: t}
	r.evil, r.mark = filepath.Join(filepath.Dir(r.root), "evil"), filepath.Join(filepath.Dir(r.root), "mark")
	write(t, r.evil, "#!/bin/sh\necho \"$0 $*\" >> "+r.mark+"\nexit 1\n")
	if err := os.Chmod(r.evil, 0o755); err != nil {
		t.Fatal(err)
	}
	r.host(`git init -q -b main . && git config user.name n && git config user.email e@x && echo "*.txt filter=z diff=z merge=z" > .gitattributes && echo a > a.txt && git add . && git commit -qm one`)
	return r
}

// host runs a script outside of any sandbox.
func (r *repository) host(script string) string {
	r.t.Helper()
	cmd := r.bash(script)
	cmd.Env = append(cmd.Env, "EVIL="+r.evil, "GIT_EDITOR=true")
	cmd.Stdin = nil
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// hostGit does what a person does later. Failures are theirs to see; what
// counts is what is run.
const hostGit = `exec 2>/dev/null </dev/null
git() { timeout 1 git "$@"; }
git status; git status --porcelain --ignored; echo b >> a.txt; git diff; git add -A; git commit -m two; git log -p -1; git show --show-signature
git checkout -b side; echo c > c.txt; git add c.txt; git commit -m three; git checkout main; echo d > c.txt; git add c.txt; git commit -m four; git merge side -m five
git merge --abort; git stash; git stash pop; git branch -a; git remote -v; git fetch --all; git push origin main; git pull; git st; git x; git lg
git blame a.txt; git grep a; git rebase side; git rebase --abort; git gc --auto; git submodule update --init; git tag -s -m t t1; git commit --amend --no-edit
git archive --format=zz HEAD; git interpret-trailers --trailer k=v < a.txt; git difftool -y -t t HEAD~1; git mergetool -t t; git ls-remote origin; git describe; git worktree list
true`

// attacks plant something; $EVIL is the program that must never run.
var attacks = []struct{ claim, script string }{
	{"a new hook", `printf '#!/bin/sh\n$EVIL hook\n' "$EVIL" > .git/hooks/pre-commit; cp $EVIL .git/hooks/post-checkout; chmod +x .git/hooks/*`},
	{"a hook by a link", `ln -s $EVIL .git/hooks/pre-commit`},
	{"a hook by a hard link", `cp $EVIL e; chmod +x e; ln e .git/hooks/pre-commit`},
	{"a hook moved in", `cp $EVIL .git/x && mv .git/x .git/hooks/pre-commit`},
	{"the directory of hooks replaced by a link", `mkdir h; cp $EVIL h/pre-commit; rm -r .git/hooks; ln -s ../h .git/hooks`},
	{"the directory of hooks replaced by another", `mkdir h; cp $EVIL h/pre-commit; rm -r .git/hooks; mv h .git/hooks`},
	{"core.fsmonitor", `git config core.fsmonitor $EVIL`},
	{"core.hooksPath", `mkdir h; cp $EVIL h/pre-commit; git config core.hooksPath h`},
	{"core.pager and pager.log", `git config core.pager $EVIL; git config pager.log $EVIL; git config pager.status $EVIL`},
	{"core.editor and sequence.editor", `git config core.editor $EVIL; git config sequence.editor $EVIL`},
	{"core.sshCommand with a remote", `git config core.sshCommand $EVIL; git remote add origin ssh://h/x`},
	{"filters", `git config filter.z.clean $EVIL; git config filter.z.smudge $EVIL; git config filter.z.process $EVIL`},
	{"diff drivers", `git config diff.z.command $EVIL; git config diff.z.textconv $EVIL; git config diff.external $EVIL`},
	{"merge drivers", `git config merge.z.driver "$EVIL %O %A %B"`},
	{"aliases", `git config alias.st "!$EVIL"; git config alias.x "!$EVIL"; git config alias.lg "!$EVIL"`},
	{"a program for signatures", `git config gpg.program $EVIL; git config commit.gpgSign true; git config log.showSignature true`},
	{"a helper for credentials", `git config credential.helper "!$EVIL"; git remote add origin http://127.0.0.1:1/x`},
	{"a remote that is a command", `git config protocol.ext.allow always; git remote add origin "ext::$EVIL %S"`},
	{"an address that is rewritten to a command", `git remote add origin https://h/x; git config protocol.ext.allow always; git config "url.ext::$EVIL .insteadOf" https://h/`},
	{"uploadpack of a remote", `git remote add origin .; git config remote.origin.uploadpack $EVIL; git config remote.origin.receivepack $EVIL`},
	{"a file that is included", `printf '[core]\n\tfsmonitor = %s\n' $EVIL > inc; git config include.path ../inc`},
	{"a file that is included if", `printf '[core]\n\tfsmonitor = %s\n' $EVIL > inc; git config "includeIf.gitdir:**.path" ../inc`},
	{"a configuration of the work tree", `git config extensions.worktreeConfig true; git config --worktree core.fsmonitor $EVIL`},
	{"a key behind a section's name", `printf '[core] fsmonitor = %s\n' $EVIL >> .git/config`},
	{"a key in odd spelling", `printf '[CoRe]\n\tFsMonitor \t= "%s" ; x\n' $EVIL >> .git/config`},
	{"a key over two lines", `printf '[core]\nfsmonitor = \\\n  %s\n' $EVIL >> .git/config`},
	{"a key with lines that end as elsewhere", `printf '[core]\r\n\tfsmonitor = %s\r\n' $EVIL >> .git/config`},
	{"a key in the old form of a subsection", `printf '[filter.z]\n\tclean = %s\n' $EVIL >> .git/config`},
	{"a key behind a header of a mebibyte", `{ head -c 2000000 /dev/zero | tr '\0' '#'; printf '\n[core]\n\tfsmonitor = %s\n' $EVIL; } >> .git/config`},
	{"a configuration that is a link", `cp .git/config c; printf '[core]\n\tfsmonitor = %s\n' $EVIL >> c; ln -sf ../c .git/config`},
	{"a configuration that is a pipe", `rm .git/config; mkfifo .git/config`},
	{"a tool for differences", `git config diff.tool t; git config difftool.t.cmd $EVIL; git config merge.tool t; git config mergetool.t.cmd $EVIL`},
	{"a format of archives and a trailer", `git config tar.zz.command $EVIL; git config trailer.k.command $EVIL; git config trailer.k.key k`},
	{"commondir", `mkdir evil && cp -r .git/. evil/ && cp $EVIL evil/hooks/pre-commit && git config -f evil/config core.fsmonitor $EVIL && echo ../evil > .git/commondir`},
	{".git replaced by a copy", `mv .git .g; cp -r .g .git; cp $EVIL .git/hooks/pre-commit; git config core.fsmonitor $EVIL`},
	{".git replaced by a link", `mv .git .g; cp -r .g decoy; cp $EVIL decoy/hooks/pre-commit; git config -f decoy/config core.fsmonitor $EVIL; ln -s decoy .git`},
	{".git replaced by a file", `mv .git .g; cp -r .g decoy; git config -f decoy/config core.fsmonitor $EVIL; echo "gitdir: decoy" > .git`},
	{".git removed and made anew", `rm -rf .git; git init -q .; git config core.fsmonitor $EVIL; cp $EVIL .git/hooks/pre-commit`},
	{".git removed and the root made a repository", `rm -rf .git; git init -q --bare b; mv b/* .; git config -f config core.bare false; git config -f config core.worktree .; git config -f config core.fsmonitor $EVIL`},
	{"a submodule that updates by a command", `git config submodule.s.update "!$EVIL"; git config submodule.s.url ./s; printf '[submodule "s"]\n\tpath = s\n\turl = ./s\n' > .gitmodules`},
}

func TestVCSAttacks(t *testing.T) {
	onBackends(t, func(t *testing.T, by string) {
		for _, row := range attacks {
			t.Run(row.claim, func(t *testing.T) {
				r := newRepository(t)
				cmd := r.bash(row.script)
				cmd.Env = append(cmd.Env, "EVIL="+r.evil)
				e := runConfined(t, r.policyBy(by, policy.WorkspaceWrite), cmd)
				c := e.classify()
				if c.VCSHooks != policy.HooksChecked || by == "landlock" && len(c.Undone) == 0 {
					t.Errorf("%v, reported: %+v", e, c)
				}
				r.host(hostGit)
				if mark, err := os.ReadFile(r.mark); err == nil {
					t.Errorf("the host's git ran what was planted:\n%s\n%v, reported: %+v", mark, e, c)
				}
			})
		}
	})
}

// TestVCSAttacksWork shows that what is planted would be run, or the test above
// would show nothing.
func TestVCSAttacksWork(t *testing.T) {
	harmless := []string{
		"a configuration that is a pipe", // it holds git up instead
		"a remote that is a command", "an address that is rewritten to a command", "a submodule that updates by a command",
		"core.editor and sequence.editor", "core.pager and pager.log", "a helper for credentials", "a format of archives and a trailer",
	}
	for _, row := range attacks {
		if slices.Contains(harmless, row.claim) {
			continue
		}
		t.Run(row.claim, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			r.host(row.script)
			r.host(hostGit)
			if _, err := os.Stat(r.mark); err != nil {
				t.Error("git runs nothing because of it")
			}
		})
	}
}

func (r *repository) guard() *vcsGuard {
	r.t.Helper()
	g, err := guardVCS(r.root, policy.WritableRoots(policy.Scope{Mode: policy.WorkspaceWrite, Root: r.root}))
	if err != nil {
		r.t.Fatal(err)
	}
	return g
}

func (r *repository) check(g *vcsGuard) []policy.Undone {
	r.t.Helper()
	undone, err := g.check()
	if err != nil {
		r.t.Fatal(err)
	}
	return undone
}

func TestVCSLeavesWork(t *testing.T) {
	for _, row := range []struct{ claim, script string }{
		{"a commit", `echo b > b && git add b && git commit -qm two`},
		{"a branch", `git checkout -qb side`},
		{"a stash", `echo b > a.txt && git stash -q && git stash pop -q`},
		{"collecting", `git gc -q`},
		{"a tag", `git tag t`},
		{"a repository below", `git init -q sub`},
		{"a repository made again", `git init -q .`},
		{"harmless configuration", `git config user.name other && git config pull.rebase true && git config core.autocrlf input && git config color.ui never`},
		{"a remote and a branch that follows it", `git init -q --bare $TMPDIR/up && git remote add origin $TMPDIR/up && git push -qu origin main`},
		{"a work tree", `git worktree add -q ../tmp/wt`},
	} {
		t.Run(row.claim, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t)
			g := r.guard()
			r.host(row.script)
			want, _ := os.ReadFile(r.root + "/.git/config")
			if undone := r.check(g); undone != nil {
				t.Errorf("undone: %+v", undone)
			}
			if got, _ := os.ReadFile(r.root + "/.git/config"); !bytes.Equal(got, want) {
				t.Errorf("the configuration was\n%s\nand is\n%s", want, got)
			}
		})
	}
}

func TestVCSKeepsOtherEdits(t *testing.T) {
	r := newRepository(t)
	write(t, r.root+"/.git/hooks/commit-msg", "#!/bin/sh\nexit 0\n")
	before, _ := os.ReadFile(r.root + "/.git/config")
	g := r.guard()
	r.host(`git config core.fsmonitor $EVIL; printf '\tname = other # mine\n[x "y"]\n\tz\n' >> .git/config; git config alias.st "!$EVIL"
rm .git/hooks/commit-msg; echo 'preset: x' > dsh-run.yaml`)
	undone := fmt.Sprint(r.check(g))
	after, _ := os.ReadFile(r.root + "/.git/config")
	if bytes.Contains(after, []byte(r.evil)) || !bytes.Contains(after, []byte("\tname = other # mine\n[x \"y\"]\n\tz\n")) || !bytes.HasPrefix(after, before[:len(before)/2]) {
		t.Errorf("the configuration was\n%s\nand is\n%s", before, after)
	}
	if hook, err := os.ReadFile(r.root + "/.git/hooks/commit-msg"); err != nil || string(hook) != "#!/bin/sh\nexit 0\n" {
		t.Errorf("the hook that was there: %q, %v", hook, err)
	}
	if _, err := os.Stat(r.root + "/dsh-run.yaml"); err == nil {
		t.Error("the workspace has a configuration that a command wrote")
	}
	for _, want := range []string{"core.fsmonitor", "alias.st", "commit-msg", "dsh-run.yaml"} {
		if !strings.Contains(undone, want) {
			t.Errorf("%s is not reported: %s", want, undone)
		}
	}
}

func TestVCSRestoresExactly(t *testing.T) {
	r := newRepository(t)
	r.host(`printf '# mine\n[core]\n\teditor = vi ; x\n[alias]\n\tst = status\n' >> .git/config`)
	before, _ := os.ReadFile(r.root + "/.git/config")
	g := r.guard()
	r.host(`git config core.editor $EVIL; git config alias.st "!$EVIL"; git config --unset-all alias.st; git config core.pager $EVIL; rm -r .git/hooks`)
	r.check(g)
	if after, _ := os.ReadFile(r.root + "/.git/config"); !bytes.Equal(before, after) {
		t.Errorf("the configuration was\n%s\nand is\n%s", before, after)
	}
}

// TestVCSRunsShareWhatWasBefore overlaps runs: what the first one planted is
// not what was there before the second.
func TestVCSRunsShareWhatWasBefore(t *testing.T) {
	r := newRepository(t)
	first := r.guard()
	r.host(`git config core.fsmonitor $EVIL; cp $EVIL .git/hooks/pre-commit`)
	second := r.guard()
	r.check(first)
	r.host(`git config core.fsmonitor $EVIL; cp $EVIL .git/hooks/pre-commit`)
	if undone := r.check(second); len(undone) != 2 {
		t.Errorf("undone: %+v", undone)
	}
	r.host(hostGit)
	if mark, err := os.ReadFile(r.mark); err == nil {
		t.Errorf("the host's git ran what was planted:\n%s", mark)
	}
}

func TestVCSNotARepository(t *testing.T) {
	needProgram(t, "git")
	r := &repository{place: newPlace(t), t: t}
	g := r.guard()
	r.host(`git init -q . && git config user.name x`)
	if undone := r.check(g); undone != nil {
		t.Errorf("undone: %+v", undone)
	}
}

// TestConfigIsReadAsGitReadsIt compares with git on odd files.
func TestConfigIsReadAsGitReadsIt(t *testing.T) {
	needProgram(t, "git")
	for _, text := range configSeeds {
		compareWithGit(t, []byte(text))
	}
}

var configSeeds = []string{
	"", "\n", "[a]\nb=c\n", "[a]\nb\n", "[a]b=c", "[a] b = c ; d\n", "[a \"x\"]\n b = \"c ; d\" # e\n", "[a.B.c]\nd=1\n", "[A \"B\\\"\\\\C\"]\nd=1\n",
	"[a]\nb = c\\\n  d\n", "[a]\r\nb = c\r\n", "\xef\xbb\xbf[a]\nb=c", "[a]\nb = \" c \"  d  \n", "[a]\nb=c\nb=d\n[a]\nb=e\n", "[a]\n b-c1 = x\n", "[a]\nb = \\t\\n\\b\\\\\\\"\n",
	"# c\n; d\n[a]\n# e\nb = c", "[a]\nb = 'c'\n", "[a]\nb =\n", "[a]\nb = #x\n", "[a \"\"]\nb=c\n", "[a  \"x\"]\nb=c\n", "[a]\nb\t=\tc\td\n", "[a]\nb=c\x0bd\n",
	"[a]\nb==c\n", "[a]\n=c\n", "[a\nb=c\n", "[a]\nb=\"c\n", "[a]\n1b=c\n", "b=c\n", "[a]\nb.c=d\n", "[a \"x]\nb=c\n", "[a]\nb=\\q\n", "[-a]\nb=c\n", "[a.]\nb=c\n", "[.a]\nb=c\n", "[a.b \"C\"]\nd=e\n",
	"[a]\nb = c \\\n# d\n", "[a]\nb=c\rd\n", "[a]\n\rb=c\n", "[]\nb=c\n", "[a]\x00b=c\n", "[a]\nb = \"c\\\nd\"\n",
}

func FuzzConfigIsReadAsGitReadsIt(f *testing.F) {
	for _, seed := range configSeeds {
		f.Add([]byte(seed))
	}
	if _, err := exec.LookPath("git"); err != nil {
		f.Skip("there is no git to compare with")
	}
	f.Fuzz(func(t *testing.T, text []byte) { compareWithGit(t, text) })
}

// compareWithGit fails when git sees an entry in text that parseConfig does
// not. What git refuses may be read, and what is refused may be read by git.
func compareWithGit(t *testing.T, text []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := exec.Command("git", "config", "-l", "-z", "--file", path).Output()
	got, refused := parseConfig(text)
	if err != nil || refused != nil {
		return
	}
	var lines strings.Builder
	for _, e := range got.entries {
		fmt.Fprint(&lines, e.key)
		if !e.bare {
			fmt.Fprintf(&lines, "\n%s", e.value)
		}
		lines.WriteByte(0)
	}
	// How space inside of a value is kept depends on git's version.
	spaces := func(s string) string {
		return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), " \x00", "\x00")
	}
	if spaces(lines.String()) != spaces(string(want)) && lines.String() != string(want) {
		t.Errorf("%q: git reads %q, this reads %q", text, want, lines.String())
	}
}

// TestRevertConfigLaw holds for every pair of files: afterwards what executes is
// what it was, and the rest is what it became.
func FuzzRevertConfig(f *testing.F) {
	f.Add("[core]\n\teditor = vi\n", "[core]\n\teditor = x\n\tbare = true\n[alias]\na=b\n")
	f.Add("[a]\nb=c", "[core] pager = \"x\" # y\n[a]\nb=d")
	f.Fuzz(func(t *testing.T, first, second string) {
		before, err1 := parseConfig([]byte(first))
		after, err2 := parseConfig([]byte(second))
		if err1 != nil || err2 != nil {
			return
		}
		text, keys := revertConfig(before, after)
		if keys == nil {
			text = after.text
		}
		now, err := parseConfig(text)
		if err != nil {
			t.Fatalf("%q is unreadable: %v", text, err)
		}
		for _, e := range slices.Concat(before.entries, after.entries, now.entries) {
			want := after.values(e.key)
			if slices.Contains(keys, e.key) {
				want = before.values(e.key)
			}
			if !slices.Equal(now.values(e.key), want) {
				t.Errorf("%s is %v, want %v; %q and %q give %q", e.key, now.values(e.key), want, first, second, text)
			}
		}
	})
}

func BenchmarkVCSGuard(b *testing.B) {
	dir := b.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		b.Skipf("git init: %v: %s", err, out)
	}
	for range 2 {
		time.Sleep(2 * fresh)
		g, _ := guardVCS(dir, policy.Roots{Dirs: []string{dir}})
		_, _ = g.check()
	}
	b.ResetTimer()
	for b.Loop() {
		g, err := guardVCS(dir, policy.Roots{Dirs: []string{dir}})
		if err != nil {
			b.Fatal(err)
		}
		if undone, err := g.check(); err != nil || undone != nil {
			b.Fatal(undone, err)
		}
	}
}

// TestLinkedWorktree commits in a work tree whose repository lies outside, and
// plants in what it may write of that.
func TestLinkedWorktree(t *testing.T) {
	onBackends(t, func(t *testing.T, by string) {
		for _, row := range []struct {
			claim, script string
			works         bool
		}{
			{"a commit works", `echo b > b && git add b && git commit -qm two && git checkout -qb another && git stash list`, true},
			{"the repository's configuration is out of reach", `git config core.fsmonitor $EVIL`, false},
			{"the repository's hooks are out of reach", `cp $EVIL ../out/repo/.git/hooks/pre-commit`, false},
			{"another common directory", `cp -r ../out/repo/.git evil && git config -f evil/config core.fsmonitor $EVIL && echo $WS/evil > ../out/repo/.git/worktrees/ws/commondir`, true},
			{"a configuration of the work tree", `printf '[core]\n\tfsmonitor = %s\n' $EVIL > ../out/repo/.git/worktrees/ws/config.worktree`, true},
			{"another repository", `cp -r ../out/repo/.git evil && git config -f evil/config core.fsmonitor $EVIL && rm .git && echo "gitdir: evil" > .git`, true},
		} {
			t.Run(row.claim, func(t *testing.T) {
				r := newRepository(t)
				r.host(`cd $OUT && git clone -q $WS repo && cd repo && git config user.name n && git config user.email e@x && git config extensions.worktreeConfig true && find $WS -mindepth 1 -delete && git worktree add -qf $WS`)
				p := r.policyBy(by, policy.WorkspaceWrite)
				if p.Worktree = policy.FindWorktree(r.root); p.Worktree == nil {
					t.Fatal("it is not found")
				}
				cmd := r.bash(row.script)
				cmd.Env = append(cmd.Env, "EVIL="+r.evil)
				e := runConfined(t, p, cmd)
				if (e.exit == 0) != row.works && by == "landlock" || e.exit != 0 && row.claim == "a commit works" {
					t.Error(e)
				}
				c := e.classify()
				r.host(hostGit)
				if mark, err := os.ReadFile(r.mark); err == nil {
					t.Errorf("the host's git ran what was planted:\n%s\n%v, reported: %+v", mark, e, c)
				}
			})
		}
	})
}
