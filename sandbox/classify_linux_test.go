//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session/sessiontest"
)

// deniedRows are commands that are really run: what they say decides.
var deniedRows = []struct {
	claim, needs, script string
	mode                 policy.Mode
	op, path             string // "" where it is the command's own failure
}{
	{"a redirection", "bash", `echo x > $OUT/n`, policy.WorkspaceWrite, opWrite, "$OUT/n"},
	{"a redirection in the workspace", "bash", `echo x > n`, policy.ReadOnly, opWrite, "$WS/n"},
	{"a redirection of dash", "dash", `dash -c 'echo x > $OUT/n'`, policy.WorkspaceWrite, opWrite, "$OUT/n"},
	{"touch", "touch", `touch $OUT/n`, policy.WorkspaceWrite, opWrite, "$OUT/n"},
	{"touch of what is there", "touch", `touch f`, policy.ReadOnly, opWrite, "$WS/f"},
	{"cp", "cp", `cp f $OUT/`, policy.WorkspaceWrite, opWrite, "$OUT/f"},
	{"mv to the outside", "mv", `mv f $OUT/`, policy.WorkspaceWrite, opWrite, "$OUT/f"},
	{"mv from the outside", "mv", `mv $OUT/victim .`, policy.WorkspaceWrite, opWrite, "$OUT/victim"},
	{"ln", "ln", `ln f $OUT/h`, policy.WorkspaceWrite, opWrite, "$OUT/h"},
	{"mkdir", "mkdir", `mkdir -p $OUT/a/b`, policy.WorkspaceWrite, opWrite, "$OUT/a"},
	{"rm", "rm", `rm -f $OUT/victim`, policy.WorkspaceWrite, opWrite, "$OUT/victim"},
	{"tee", "tee", `echo x | tee $OUT/n`, policy.WorkspaceWrite, opWrite, "$OUT/n"},
	{"sed in place", "sed", `sed -i s/a/b/ $OUT/victim`, policy.WorkspaceWrite, opWrite, "$OUT/"},
	{"chmod", "chmod", `chmod 700 f`, policy.ReadOnly, opMetadata, "$WS/f"},
	{"times", "touch", `touch -d 2001-01-01 $TMPDIR`, policy.ReadOnly, opMetadata, "$TMPDIR"},
	{"python", "python3", `python3 -c 'import os; open(os.environ["OUT"]+"/n","w")'`, policy.WorkspaceWrite, opWrite, "$OUT/n"},
	{"python's rename", "python3", `python3 -c 'import os; os.rename("f", os.environ["OUT"]+"/f")'`, policy.WorkspaceWrite, opWrite, "$OUT/f"},
	{"node", "node", `node -e 'require("fs").writeFileSync(process.env.OUT+"/n","")'`, policy.WorkspaceWrite, opWrite, "$OUT/n"},
	{"git init", "git", `git init -q .`, policy.ReadOnly, opWrite, "$WS/.git"},
	{"git config --global", "git", `git config --global user.name n`, policy.WorkspaceWrite, opWrite, "$OUT/.gitconfig"},
	{"sqlite", "sqlite3", `sqlite3 $OUT/x.db 'create table t(a)'`, policy.WorkspaceWrite, opWrite, "$OUT/x.db"},
	{"a denial beside exit 0", "bash", `echo x > $OUT/n; true`, policy.WorkspaceWrite, opWrite, "$OUT/n"},
	{"a denial in a pipeline", "bash", `{ echo x > $OUT/n; } | cat`, policy.WorkspaceWrite, opWrite, "$OUT/n"},

	{"success", "bash", `true`, policy.ReadOnly, "", ""},
	{"a missing file", "cat", `cat nope`, policy.ReadOnly, "", ""},
	{"a missing command", "bash", `dsh-no-such-command`, policy.ReadOnly, "", ""},
	{"a script that is not executable", "bash", `./f`, policy.ReadOnly, "", ""},
	{"a denial that is printed on stdout", "bash", `echo "touch: cannot touch '$OUT/n': Permission denied"; exit 1`, policy.ReadOnly, "", ""},
	{"a signal", "bash", `echo x > $OUT/n; kill -9 $$`, policy.ReadOnly, "", ""},
	{"nothing but an exit code", "bash", `exit 13`, policy.ReadOnly, "", ""},
	{"the full device", "bash", `echo x > /dev/full`, policy.ReadOnly, "", ""},
}

func TestClassifyWhatCommandsSay(t *testing.T) {
	needKernel(t)
	for _, row := range deniedRows {
		t.Run(row.claim, func(t *testing.T) {
			needProgram(t, row.needs)
			p := newPlace(t)
			checkDenied(t, p, runConfined(t, p.policy(row.mode), p.bash(row.script)), row.op, row.path)
		})
	}
}

// checkDenied compares the classification with a path in terms of the place; a
// path that ends with a slash stands for all below it.
func checkDenied(t *testing.T, p place, e ended, op, path string) {
	t.Helper()
	want := os.Expand(path, func(name string) string {
		return map[string]string{"OUT": p.out, "WS": p.root, "TMPDIR": p.temp}[name]
	})
	got := e.classify()
	wanted := got.Path == want || strings.HasSuffix(want, "/") && strings.HasPrefix(got.Path, want)
	if got.Denied != (op != "") || got.Op != op || !wanted || got.Denied && got.Confidence != policy.ByPath {
		t.Errorf("%v\n got %+v\nwant %q of %q", e, got, op, want)
	}
}

func TestClassifyWhatTheHostCouldNotDoEither(t *testing.T) {
	needKernel(t)
	sessiontest.Need(t, "ordinary-user", os.Geteuid() != 0, "root could do everything; TestAsOrdinaryUser runs it")
	p := newPlace(t)
	for _, script := range []string{`cat /etc/shadow`, `touch /etc/dsh-new`, `rm /etc/passwd`, `echo x >> /etc/passwd`, `ls /root`, `chmod 777 /etc/passwd`} {
		if e := runConfined(t, p.policy(policy.ReadOnly), p.bash(script)); e.exit == 0 || e.classify().Denied {
			t.Errorf("%s: %v, %+v", script, e, e.classify())
		}
	}
}

// TestClassifyInAnotherLanguage makes a German locale and lets commands speak
// it.
func TestClassifyInAnotherLanguage(t *testing.T) {
	needKernel(t)
	needProgram(t, "localedef")
	p := newPlace(t)
	made := exec.Command("localedef", "-i", "de_DE", "-f", "UTF-8", p.temp+"/de_DE.UTF-8").Run()
	german := func(script string) *exec.Cmd {
		cmd := p.bash(script)
		cmd.Env = append(cmd.Env, "LC_ALL=de_DE.UTF-8", "LANGUAGE=", "LOCPATH="+p.temp)
		return cmd
	}
	said := runConfined(t, p.policy(policy.ReadOnly), german(`touch $OUT/n`)).stderr
	sessiontest.Need(t, "locale", made == nil && strings.Contains(said, "Keine Berechtigung"), "no German messages here")
	for script, path := range map[string]string{`touch $OUT/n`: "$OUT/n", `echo x > $OUT/n`: "$OUT/n", `cp f $OUT/`: "$OUT/f", `echo x > n`: "$WS/n"} {
		checkDenied(t, p, runConfined(t, p.policy(policy.ReadOnly), german(script)), opWrite, path)
	}
	checkDenied(t, p, runConfined(t, p.policy(policy.ReadOnly), german(`chmod 700 f`)), opMetadata, "$WS/f")
	checkDenied(t, p, runConfined(t, p.policy(policy.WorkspaceWrite), german(`ln f $OUT/h`)), opWrite, "$OUT/h")
}
