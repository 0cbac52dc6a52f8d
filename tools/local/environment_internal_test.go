package local

import (
	"slices"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/tools"
)

func TestInternalEnvironmentWithholds(t *testing.T) {
	type fate int
	const (
		kept     fate = iota
		withheld      // and named
		gone          // without a word
	)
	for _, c := range []struct {
		claim   string
		names   []string
		allowed []string
		want    fate
	}{
		{"each secret word alone", secretWords, nil, withheld},
		{"a secret word at the start", []string{"TOKEN_OF_CI", "KEYRING", "COOKIES"}, nil, withheld},
		{"a secret word in the middle", []string{"MY_SECRET_THING", "XPASSWDX", "AWS_ACCESS_KEY_ID", "THECREDENTIALS"}, nil, withheld},
		{"a secret word at the end", []string{"OPENAI_API_KEY", "PGPASSWORD", "GPG_PASSPHRASE"}, nil, withheld},
		{"a secret word in any case", []string{"api_key", "Github_Token", "pgPassWord", "npm_config_cookie"}, nil, withheld},
		{"a secret behind the prefix of the locale", []string{"LC_TOKEN", "LC_API_KEY"}, nil, withheld},
		{"what a user's session needs", []string{"PATH", "HOME", "USER", "SHELL", "TZ", "SSH_AUTH_SOCK"}, nil, kept},
		{"the locale", []string{"LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES"}, nil, kept},
		{"proxies in both cases", []string{"HTTP_PROXY", "https_proxy", "ALL_PROXY", "no_proxy"}, nil, kept},
		{"what only resembles a secret", []string{"PASS", "TOKE", "AUTHOR", "CRED", "KE_Y"}, nil, kept},
		{"the host's own facts", []string{"DSH_SESSION_ID", "DSH_CALL_ID", "DSH_ANYTHING", "DSH_TOKEN", "DSH_"}, nil, gone},
		{"the host's own facts, allowed or not", []string{"DSH_TOKEN"}, []string{"DSH_TOKEN"}, gone},
		{"what a shell or loader runs first", []string{"BASH_ENV", "ENV", "LD_PRELOAD"}, nil, withheld},
		{"what a shell or loader runs first, allowed or not", hijackers, hijackers, withheld},
		{"names that only contain a hijacker's", []string{"MY_ENV", "ENVIRONMENT", "LD_PRELOADED"}, nil, kept},
		{"an allowed secret", []string{"API_KEY"}, []string{"API_KEY"}, kept},
		{"a secret whose neighbour is allowed", []string{"API_KEY_2", "MY_API_KEY"}, []string{"API_KEY"}, withheld},
	} {
		t.Run(c.claim, func(t *testing.T) {
			for _, name := range c.names {
				env, names := environment([]string{name + "=a=b"}, c.allowed)
				if got := slices.Contains(env, name+"=a=b"); got != (c.want == kept) {
					t.Errorf("%s: passed is %t", name, got)
				}
				if got := slices.Contains(names, name); got != (c.want == withheld) {
					t.Errorf("%s: withheld is %t", name, got)
				}
			}
		})
	}
}

func TestInternalEnvironmentNamesWhatIsWithheld(t *testing.T) {
	env, names := environment([]string{"Z_KEY=hush", "A=1", "A_TOKEN=hush", "Z_KEY=hush", "no equals sign", "=C:=hush"}, nil)
	if want := []string{"A_TOKEN", "Z_KEY"}; !slices.Equal(names, want) {
		t.Errorf("withheld are %q, want %q, sorted and each once", names, want)
	}
	if all := strings.Join(append(env, names...), " "); strings.Contains(all, "hush") {
		t.Errorf("a value is told: %q", all)
	}
	if want := append([]string{"A=1"}, calm...); !slices.Equal(env, want) {
		t.Errorf("the environment is %q, want %q", env, want)
	}
}

func TestInternalEnvironmentIsCalmWhateverTheHostSays(t *testing.T) {
	env, _ := environment([]string{"TERM=xterm", "PAGER=less", "GIT_TERMINAL_PROMPT=1"}, nil)
	last := map[string]string{} // the last of a name counts
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		last[name] = value
	}
	for name, want := range map[string]string{
		"NO_COLOR": "1", "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0",
	} {
		if last[name] != want {
			t.Errorf("%s is %q, want %q", name, last[name], want)
		}
	}
}

func TestInternalFactsHaveOneOwner(t *testing.T) {
	value := func(*tools.Call) string { return "" }
	for _, c := range []struct {
		claim string
		facts []Fact
		panic string // a part of its sentence
	}{
		{"no facts", nil, ""},
		{"facts of their own", []Fact{{"DSH_A", "a", value}, {"DSH_B", "b", value}}, ""},
		{"one owner, two facts", []Fact{{"DSH_A", "a", value}, {"DSH_B", "a", value}}, ""},
		{"a foreign name", []Fact{{"PATH", "a", value}}, "begins with DSH_"},
		{"a name in small letters", []Fact{{"dsh_a", "a", value}}, "begins with DSH_"},
		{"a name with a value in it", []Fact{{"DSH_A=B", "a", value}}, "begins with DSH_"},
		{"a name with a NUL", []Fact{{"DSH_A\x00", "a", value}}, "begins with DSH_"},
		{"no owner", []Fact{{"DSH_A", "", value}}, "needs an owner"},
		{"no value", []Fact{{"DSH_A", "a", nil}}, "and a value"},
		{"two owners", []Fact{{"DSH_A", "ann", value}, {"DSH_A", "bob", value}}, "by ann and by bob"},
		{"one owner twice", []Fact{{"DSH_A", "ann", value}, {"DSH_A", "ann", value}}, "one owner"},
		{"this package's shell", []Fact{{"DSH_SHELL", "a", value}}, "package local"},
		{"this package's log", []Fact{{"DSH_LOG", "a", value}}, "package local"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			defer func() {
				said, _ := recover().(string)
				if (said == "") != (c.panic == "") || !strings.Contains(said, c.panic) {
					t.Errorf("it panics with %q, want %q", said, c.panic)
				}
			}()
			checkFacts(c.facts)
		})
	}
}
