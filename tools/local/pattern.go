package local

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/dsh-run/dsh/tools"
)

// pattern is a glob that a path must match: one of its forms.
type pattern struct {
	// base is the directory that all matches lie in, as the pattern spells it.
	base  string
	forms []string
}

// parsePattern reads a glob whose relative paths start at root. Without a
// slash it is compared with base names at any depth. Where its first segments
// exist just as they are spelled, it also means them.
func parsePattern(root, text string) (p pattern, err error) {
	switch {
	case text == "":
		return p, fail(tools.InvalidArgs, "the pattern is empty; ** matches every file")
	case strings.HasPrefix(text, "~/"):
		return p, fail(tools.InvalidArgs, "%s: ~ is not expanded; give an absolute path", text)
	case alternatives(text) > maxAlternatives:
		return p, fail(tools.InvalidArgs, "the braces of the pattern stand for more than %d patterns", maxAlternatives)
	}
	text = cleanPattern(filepath.ToSlash(text))
	literal := literalForm(root, text)
	switch {
	case doublestar.ValidatePattern(text):
		p.forms = append(p.forms, text)
	case literal == "":
		return p, fail(tools.InvalidArgs, "the pattern %q is malformed at position %d, where a bracket or brace is not closed; put \\ before a character that stands for itself", text, 1+malformedAt(text))
	}
	if literal != "" && literal != text {
		p.forms = append(p.forms, literal)
	}
	if !strings.Contains(text, "/") {
		p.base = "."
		for i, f := range p.forms {
			p.forms[i] = "**/" + f
		}
		return p, nil
	}
	p.base = commonBase(p.forms)
	return p, nil
}

// cleanPattern removes segments that mean nothing.
func cleanPattern(text string) string {
	for {
		rest, ok := strings.CutPrefix(text, "./")
		if !ok {
			break
		}
		text = strings.TrimLeft(rest, "/")
	}
	return strings.ReplaceAll(text, "/./", "/")
}

// commonBase is the directory in front of the first special character.
func commonBase(forms []string) string {
	base, _ := doublestar.SplitPattern(forms[0])
	for _, f := range forms[1:] {
		other, _ := doublestar.SplitPattern(f)
		for other != base && !strings.HasPrefix(other, strings.TrimSuffix(base, "/")+"/") && base != "." {
			base = path.Dir(base)
		}
	}
	return base
}

// literalForm quotes the first segments of the pattern that exist as they are
// spelled although they hold special characters. It is empty where there are
// none.
func literalForm(root, text string) string {
	at, special := root, false
	if strings.HasPrefix(text, "/") {
		at = "/"
	}
	segments := strings.Split(text, "/")
	for i, s := range segments {
		if s == "" {
			continue
		}
		if at = filepath.Join(at, s); !exists(at) {
			break
		}
		if quoted := quoteSegment(s); quoted != s {
			segments[i], special = quoted, true
		}
	}
	literal := strings.Join(segments, "/")
	if !special || !doublestar.ValidatePattern(literal) {
		return ""
	}
	return literal
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func quoteSegment(s string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`, `\`, `\\`).Replace(s)
}

// match compares a path that starts where the pattern does.
func (p pattern) match(name string) bool {
	for _, f := range p.forms {
		if doublestar.MatchUnvalidated(f, name) {
			return true
		}
	}
	return false
}

// maxAlternatives bounds the patterns that braces stand for, and so the work
// of matching them.
const maxAlternatives = 4096

// alternatives is the number of patterns that the braces of text stand for,
// or more than that.
func alternatives(text string) int {
	n, options := 1, []int{}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '{':
			options = append(options, 1)
		case ',':
			if len(options) > 0 {
				options[len(options)-1]++
			}
		case '}':
			if len(options) > 0 {
				n = min(n*options[len(options)-1], 1<<30)
				options = options[:len(options)-1]
			}
		}
	}
	return n
}

// malformedAt is the first position at which the pattern cannot be completed
// any more, or its unclosed bracket or brace.
func malformedAt(text string) int {
	var open []int
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			end := classEnd(text, i)
			if end < 0 || !doublestar.ValidatePattern(text[i:end]) {
				return i
			}
			i = end - 1
		case '{':
			open = append(open, i)
		case '}':
			if len(open) == 0 {
				return i
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return open[len(open)-1]
	}
	return max(0, len(text)-1)
}

// classEnd returns the position behind the class that begins at i, or -1.
func classEnd(text string, i int) int {
	for j := i + 1; j < len(text); j++ {
		switch {
		case text[j] == '\\':
			j++
		case text[j] == ']' && j > i+1:
			return j + 1
		}
	}
	return -1
}
