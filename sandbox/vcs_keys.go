package sandbox

import (
	"slices"
	"strings"
)

// configKey is the name of one entry of git's configuration: section and
// variable in lower case, the subsection as it is.
type configKey struct {
	section, sub string
	nested       bool // it has a subsection, which may be empty
	name         string
}

func (k configKey) String() string {
	if !k.nested {
		return k.section + "." + k.name
	}
	return k.section + "." + k.sub + "." + k.name
}

// executingKeys make git run something, or look for its repository, hooks or
// further configuration elsewhere. "*" stands for any name; the subsection does
// not matter.
var executingKeys = map[string][]string{
	"alias":       {"*"},
	"browser":     {"path"},
	"core":        {"fsmonitor", "hookspath", "gitproxy", "worktree"},
	"diff":        {"external"},
	"difftool":    {"path"},
	"filter":      {"clean", "smudge", "process"},
	"imap":        {"tunnel"},
	"include":     {"path"},
	"includeif":   {"path"},
	"init":        {"templatedir"},
	"instaweb":    {"*"},
	"interactive": {"difffilter"},
	"lfs":         {"path", "args", "clean", "smudge", "standalonetransferagent", "url"},
	"man":         {"path"},
	"mergetool":   {"path"},
	"pager":       {"*"},
	"protocol":    {"allow"},
	"remote":      {"uploadpack", "receivepack", "vcs", "proxy"},
	"sendemail":   {"*"},
	"url":         {"insteadof", "pushinsteadof"},
}

// executingEndings end the names of variables that hold a command, in sections
// of git, of its extensions, and of what does not exist yet.
var executingEndings = []string{
	"command", "cmd", "program", "helper", "driver", "textconv", "editor", "pager", "hook", "hookspath",
	"external", "exec", "askpass", "browser", "clean", "smudge",
}

// harmlessKeys end like commands and hold none.
var harmlessKeys = map[string]bool{"color.pager": true, "column.clean": true, "rebase.reschedulefailedexec": true}

// addressKeys hold the address of a repository, which may be a command.
var addressKeys = map[string][]string{"remote": {"url", "pushurl"}, "submodule": {"url"}, "branch": {"remote", "pushremote"}}

// executes reports whether git may run something because of an entry, or is
// led elsewhere by it.
func executes(k configKey, value string) bool {
	names := executingKeys[k.section]
	switch {
	case slices.Contains(names, "*") || slices.Contains(names, k.name):
		return true
	case slices.Contains(addressKeys[k.section], k.name):
		return strings.Contains(value, "::") || strings.HasPrefix(value, "-")
	case k.section == "submodule" && k.name == "update":
		return strings.HasPrefix(value, "!")
	case k.section == "advice" || harmlessKeys[k.section+"."+k.name]:
		return false
	}
	return slices.ContainsFunc(executingEndings, func(end string) bool { return strings.HasSuffix(k.name, end) })
}
