package local

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// rule is one line of an ignore file.
type rule struct {
	wildcard
	negated bool
	dirOnly bool
	base    bool // is compared with the last name of a path only
}

// parseRules reads an ignore file.
func parseRules(data []byte) (rules []rule) {
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(data, byteOrderMark)))
	lines.Buffer(nil, len(data)+1)
	for lines.Scan() {
		if r, ok := parseRule(lines.Text()); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

func parseRule(line string) (r rule, ok bool) {
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line = trimSpaces(line)
	line, r.negated = strings.CutPrefix(line, "!")
	line, r.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return r, false
	}
	r.base = !strings.Contains(line, "/")
	r.wildcard, ok = parseWildcard(strings.TrimPrefix(line, "/"))
	return r, ok
}

// trimSpaces removes trailing spaces up to one that a backslash protects.
func trimSpaces(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line):
			i++
			end = i + 1
		case line[i] != ' ':
			end = i + 1
		}
	}
	return line[:end]
}

// opinion is what rules say of a path. The zero value says nothing.
type opinion uint8

const (
	silent opinion = iota
	ignored
	wanted
)

// of is the last rule that matches.
func of(rules []rule, path string, dir bool) opinion {
	name := path[strings.LastIndexByte(path, '/')+1:]
	for i := len(rules) - 1; i >= 0; i-- {
		r := rules[i]
		at := path
		if r.base {
			at = name
		}
		if r.dirOnly && !dir || !r.match(at) {
			continue
		}
		if r.negated {
			return wanted
		}
		return ignored
	}
	return silent
}

// level holds the ignore files of one directory.
type level struct {
	parent *level // nil for the root of the file system
	dir    string
	// The kinds of files, from the strongest to the weakest. What git reads
	// holds only within its repository.
	rg, plain, git, exclude []rule
	repository              bool // its root
}

// levels are the ignore files of a walk, read when they are first needed.
type levels struct{ byDir sync.Map }

func (l *levels) at(dir string) *level {
	if known, ok := l.byDir.Load(dir); ok {
		return known.(*level)
	}
	v := &level{dir: dir}
	if parent := filepath.Dir(dir); parent != dir {
		v.parent = l.at(parent)
	}
	v.read()
	known, _ := l.byDir.LoadOrStore(dir, v)
	return known.(*level)
}

func (v *level) read() {
	v.rg = rulesIn(filepath.Join(v.dir, ".rgignore"))
	v.plain = rulesIn(filepath.Join(v.dir, ".ignore"))
	v.git = rulesIn(filepath.Join(v.dir, ".gitignore"))
	repo := filepath.Join(v.dir, ".git")
	info, err := os.Stat(repo)
	if err != nil {
		return
	}
	v.repository = true
	if !info.IsDir() {
		repo = linkedRepository(repo)
	}
	v.exclude = rulesIn(filepath.Join(repo, "info", "exclude"))
}

// rulesLimit is the largest ignore file that is read.
const rulesLimit = 16 << 20

// rulesIn reads an ignore file; one that is missing or no ordinary file has no
// rules.
func rulesIn(path string) []rule {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > rulesLimit {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return parseRules(data)
}

// linkedRepository follows the file that stands for .git in a linked worktree.
func linkedRepository(file string) string {
	dir := pathIn(file, "gitdir: ")
	if dir == "" {
		return file
	}
	if common := pathIn(filepath.Join(dir, "commondir"), ""); common != "" {
		return common
	}
	return dir
}

// pathIn reads a path from a file that holds nothing else behind prefix. A
// relative one starts at the file.
func pathIn(file, prefix string) string {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<16 {
		return ""
	}
	data, err := os.ReadFile(file)
	path, ok := strings.CutPrefix(strings.TrimSpace(string(data)), prefix)
	if err != nil || !ok || path == "" {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	return path
}

// opinion of the levels from v upwards on an entry of v.dir: of each kind of
// file the nearest that says something, of the kinds the strongest.
func (v *level) opinion(path string, dir bool) opinion {
	var rg, plain, git, exclude opinion
	inRepository := true
	for at := v; at != nil; at = at.parent {
		rel := filepath.ToSlash(path[len(strings.TrimSuffix(at.dir, string(filepath.Separator)))+1:])
		first(&rg, at.rg, rel, dir)
		first(&plain, at.plain, rel, dir)
		if inRepository {
			first(&git, at.git, rel, dir)
			first(&exclude, at.exclude, rel, dir)
		}
		inRepository = inRepository && !at.repository
	}
	if inRepository { // no root of one was met
		git, exclude = silent, silent
	}
	for _, o := range []opinion{rg, plain, git, exclude} {
		if o != silent {
			return o
		}
	}
	return silent
}

func first(o *opinion, rules []rule, path string, dir bool) {
	if *o == silent && len(rules) > 0 {
		*o = of(rules, path, dir)
	}
}
