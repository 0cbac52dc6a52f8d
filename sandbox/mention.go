package sandbox

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mentions are the paths that a command line speaks of. A diagnostic may name
// a path from another directory than the one that the command began in, or none
// at all; then these are what it may mean.
type mentions struct {
	dirs  []string // that it changes to, or hands over to a program, as spelled
	paths []string // that it names, as spelled
}

// mostMentioned bounds what is taken from one command line.
const mostMentioned = 64

// changes are the ways in which a command line changes to a directory.
var changes = regexp.MustCompile(`^(?:cd|pushd|-C|--directory|--prefix|--output-dir|-d|-t|--target|--target-directory)$`)

// splitters separate words in a command line and in the programs within it.
const splitters = " \t\n;|&()<>=\"'`,"

// mentionsOf reads the arguments of a command.
func mentionsOf(argv, env []string) mentions {
	var m mentions
	if env == nil {
		env = os.Environ()
	}
	expand := expanderOf(env)
	for _, arg := range argv[min(1, len(argv)):] {
		words := strings.FieldsFunc(expand.Replace(arg+"\n"), func(r rune) bool { return strings.ContainsRune(splitters, r) })
		for i, word := range words {
			if i > 0 && changes.MatchString(words[i-1]) {
				m.dirs = appendOnce(m.dirs, word)
			}
			if isMentioned(word, words[:i]) {
				m.paths = appendOnce(m.paths, word)
			}
		}
	}
	return m
}

// outputs are options whose argument is a file that is written.
var outputs = []string{"-o", "-O", "--output", "-f", "of"}

func isMentioned(word string, before []string) bool {
	if !isPlausible(word) || strings.HasPrefix(word, "-") {
		return false
	}
	return strings.HasPrefix(word, "/") && len(word) > 1 || strings.HasPrefix(word, "../") || strings.HasPrefix(word, "./") || strings.HasPrefix(word, "~/") ||
		len(before) > 0 && slices.Contains(outputs, before[len(before)-1])
}

func appendOnce(list []string, word string) []string {
	if len(list) >= mostMentioned || slices.Contains(list, word) {
		return list
	}
	return append(list, word)
}

// expanderOf replaces variables whose value is a path, and the home directory.
func expanderOf(env []string) *strings.Replacer {
	var pairs []string
	for _, entry := range env {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || !filepath.IsAbs(value) || strings.ContainsAny(value, ":\n") {
			continue
		}
		pairs = append(pairs, "${"+name+"}", value, "$"+name+"/", value+"/", "$"+name+" ", value+" ", `$`+name+`"`, value+`"`, "$"+name+"'", value+"'", "$"+name+";", value+";", "$"+name+"\n", value+"\n",
			`process.env.`+name+`+"`, value, `$ENV{`+name+`}`, value, `ENVIRON["`+name+`"] "`, value)
		if name == "HOME" {
			pairs = append(pairs, " ~/", " "+value+"/", ">~/", ">"+value+"/")
		}
	}
	return strings.NewReplacer(pairs...)
}
