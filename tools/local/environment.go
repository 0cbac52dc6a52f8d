package local

import (
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/dsh-run/dsh/tools"
)

// Fact is a variable that an embedder gives to every command.
type Fact struct {
	// Name begins with DSH_ and is none of this package's own.
	Name string
	// Owner says who gives the variable. Each variable has one.
	Owner string
	// Value for the command of one call.
	Value func(call *tools.Call) string
}

// ownFacts are the DSH_ variables of this package.
var ownFacts = []string{"DSH_SHELL", "DSH_SESSION_ID", "DSH_CALL_ID", "DSH_SANDBOX", "DSH_LOG"}

// checkFacts panics where two owners give one variable, or a name is not to be
// given.
func checkFacts(facts []Fact) {
	owners := map[string]string{}
	for _, name := range ownFacts {
		owners[name] = "package local"
	}
	for _, f := range facts {
		switch owner, taken := owners[f.Name]; {
		case !strings.HasPrefix(f.Name, "DSH_") || strings.ContainsAny(f.Name, "=\x00"):
			panic(fmt.Sprintf("local: the fact %q of %s must have a name that begins with DSH_", f.Name, f.Owner))
		case f.Owner == "" || f.Value == nil:
			panic(fmt.Sprintf("local: the fact %s needs an owner and a value", f.Name))
		case taken:
			panic(fmt.Sprintf("local: the fact %s is given by %s and by %s; it must have one owner", f.Name, owner, f.Owner))
		}
		owners[f.Name] = f.Owner
	}
}

// secretWords mark a variable as one that commands do not get.
var secretWords = []string{"KEY", "PASSWORD", "PASSPHRASE", "PASSWD", "SECRET", "TOKEN", "CREDENTIAL", "COOKIE"}

// keptNames are never withheld, whatever words are in them.
var keptNames = []string{
	"PATH", "HOME", "USER", "SHELL", "LANG", "LANGUAGE", "TZ", "SSH_AUTH_SOCK",
	"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
}

// hijackers change what a shell or a program does before it does anything.
var hijackers = []string{"BASH_ENV", "ENV", "LD_PRELOAD"}

// calm makes programs plain: no colour, no pager, no question.
var calm = []string{"NO_COLOR=1", "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"}

// environment is what of the host's variables a command gets, and the names of
// those that are withheld, sorted. allowed names are not taken for secrets. The
// host's DSH_ variables belong to another command and go without a word.
func environment(host, allowed []string) (env, withheld []string) {
	for _, kv := range host {
		name, _, ok := strings.Cut(kv, "=")
		switch {
		case !ok || name == "" || strings.HasPrefix(systemName(name), "DSH_"):
		case slices.Contains(hijackers, systemName(name)):
			withheld = append(withheld, name)
		case isSecret(name) && !slices.Contains(allowed, name):
			withheld = append(withheld, name)
		default:
			env = append(env, kv)
		}
	}
	slices.Sort(withheld)
	return append(env, calm...), slices.Compact(withheld)
}

// systemName is the name as this system compares it.
func systemName(name string) string {
	if goruntime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

func isSecret(name string) bool {
	upper := strings.ToUpper(name)
	return !slices.Contains(keptNames, upper) && slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(upper, word) })
}

// facts are the variables that tell a command where it runs.
func (s *Set) facts(call *tools.Call, dir string) []string {
	env := []string{"DSH_SHELL=1", "DSH_CALL_ID=" + call.ID, "DSH_SANDBOX=" + call.Mode.String(), "PWD=" + dir}
	if call.Session != nil {
		log := call.Session.Log()
		env = append(env, "DSH_SESSION_ID="+log.ID(), "TMPDIR="+log.TempDir())
		if goruntime.GOOS == "windows" {
			env = append(env, "TMP="+log.TempDir(), "TEMP="+log.TempDir())
		}
		if log.Path() != "" {
			env = append(env, "DSH_LOG="+log.Path())
		}
	}
	for _, f := range s.options.Facts {
		env = append(env, f.Name+"="+f.Value(call))
	}
	return env
}
