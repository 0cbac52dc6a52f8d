package local

import (
	"slices"
	"strings"
	"unicode"
)

// wildcard is one pattern of an ignore file, read once. Matching takes time in
// proportion to pattern and path, also for hostile patterns.
type wildcard struct {
	// literal is the whole pattern where it has no special character, suffix
	// the rest of one that begins with its only star.
	literal, suffix string
	segments        []segment
}

// segment is what stands between two slashes.
type segment struct {
	any    bool // "**": any number of segments
	tokens []token
}

// token matches one byte of a set, or with star any number of bytes.
type token struct {
	star bool
	set  *byteSet // nil: c alone
	c    byte
}

type byteSet [256]bool

func (t token) matches(c byte) bool {
	if t.set != nil {
		return t.set[c]
	}
	return t.c == c
}

// parseWildcard reads a pattern as git does. ok is false for one that matches
// nothing, such as an unfinished class.
func parseWildcard(pattern string) (w wildcard, ok bool) {
	switch {
	case !strings.ContainsAny(pattern, `*?[\/`):
		return wildcard{literal: pattern}, true
	case pattern[0] == '*' && len(pattern) > 1 && !strings.ContainsAny(pattern[1:], `*?[\/`):
		return wildcard{suffix: pattern[1:]}, true
	}
	var s segment
	for len(pattern) > 0 {
		c := pattern[0]
		switch c {
		case '/':
			w.segments = append(w.segments, s.closed())
			s, pattern = segment{}, pattern[1:]
			continue
		case '*':
			s.tokens = append(s.tokens, token{star: true})
		case '?':
			s.tokens = append(s.tokens, token{set: anyByte})
		case '[':
			set, rest, ok := parseClass(pattern[1:])
			if !ok {
				return w, false
			}
			s.tokens, pattern = append(s.tokens, token{set: set}), rest
			continue
		case '\\':
			if pattern = pattern[1:]; pattern == "" {
				return w, false
			}
			if pattern[0] == '/' {
				continue
			}
			s.tokens = append(s.tokens, token{c: pattern[0]})
		default:
			s.tokens = append(s.tokens, token{c: c})
		}
		pattern = pattern[1:]
	}
	w.segments = append(w.segments, s.closed())
	return w, true
}

var anyByte = func() *byteSet {
	var s byteSet
	for i := range s {
		s[i] = i != '/'
	}
	return &s
}()

// closed makes a segment of stars alone one that spans segments.
func (s segment) closed() segment {
	stars := !slices.ContainsFunc(s.tokens, func(t token) bool { return !t.star })
	s.any = stars && len(s.tokens) > 1
	return s
}

// match reports whether the whole path matches.
func (w wildcard) match(path string) bool {
	switch {
	case w.segments == nil && w.suffix != "":
		return strings.HasSuffix(path, w.suffix)
	case w.segments == nil:
		return path == w.literal
	}
	return matchSegments(w.segments, strings.Split(path, "/"))
}

// matchSegments goes back only to the last "**": what an earlier one could
// take, the last one can take too.
func matchSegments(want []segment, path []string) bool {
	i, j, star, mark := 0, 0, -1, 0
	for j < len(path) {
		switch {
		case i < len(want) && want[i].any:
			star, mark = i, j
			if i++; i == len(want) {
				return true // at its end, "**" takes one segment or more
			}
			continue
		case i < len(want) && want[i].match(path[j]):
			i, j = i+1, j+1
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		i, j = star+1, mark
	}
	return i == len(want)
}

func (s segment) match(name string) bool {
	i, j, star, mark := 0, 0, -1, 0
	for j < len(name) {
		switch {
		case i < len(s.tokens) && s.tokens[i].star:
			star, mark = i, j
			i++
			continue
		case i < len(s.tokens) && s.tokens[i].matches(name[j]):
			i, j = i+1, j+1
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		i, j = star+1, mark
	}
	for i < len(s.tokens) && s.tokens[i].star {
		i++
	}
	return i == len(s.tokens)
}

// parseClass reads a class behind its bracket.
func parseClass(p string) (set *byteSet, rest string, ok bool) {
	set = &byteSet{}
	negated := p != "" && (p[0] == '!' || p[0] == '^')
	if negated {
		p = p[1:]
	}
	for first, prev := true, -1; ; first = false {
		if p == "" {
			return nil, "", false
		}
		if p[0] == ']' && !first {
			break
		}
		if name, after, found := namedClass(p); found {
			if !set.addNamed(name) {
				return nil, "", false
			}
			p, prev = after, -1
			continue
		}
		if p[0] == '-' && prev >= 0 && len(p) > 1 && p[1] != ']' {
			var to byte
			if to, p, ok = classByte(p[1:]); !ok {
				return nil, "", false
			}
			for c := prev; c <= int(to); c++ {
				set[c] = true
			}
			prev = -1
			continue
		}
		var c byte
		if c, p, ok = classByte(p); !ok {
			return nil, "", false
		}
		set[c], prev = true, int(c)
	}
	if negated {
		for i := range set {
			set[i] = !set[i]
		}
	}
	set['/'] = false
	return set, p[1:], true
}

func classByte(p string) (c byte, rest string, ok bool) {
	if p[0] == '\\' {
		p = p[1:]
	}
	if p == "" {
		return 0, "", false
	}
	return p[0], p[1:], true
}

// namedClass reads "[:name:]".
func namedClass(p string) (name, rest string, ok bool) {
	if !strings.HasPrefix(p, "[:") {
		return "", "", false
	}
	end := strings.IndexByte(p[2:], ']')
	if end < 1 || p[2+end-1] != ':' {
		return "", "", false
	}
	return p[2 : 2+end-1], p[2+end+1:], true
}

func (s *byteSet) addNamed(name string) bool {
	is, ok := namedClasses[name]
	for c := range unicode.MaxASCII + 1 {
		if ok && is(rune(c)) {
			s[c] = true
		}
	}
	return ok
}

var namedClasses = map[string]func(rune) bool{
	"alnum":  func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) },
	"alpha":  unicode.IsLetter,
	"blank":  func(r rune) bool { return r == ' ' || r == '\t' },
	"cntrl":  unicode.IsControl,
	"digit":  unicode.IsDigit,
	"graph":  func(r rune) bool { return r > ' ' && r < 0x7f },
	"lower":  unicode.IsLower,
	"print":  func(r rune) bool { return r >= ' ' && r < 0x7f },
	"punct":  func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) },
	"space":  unicode.IsSpace,
	"upper":  unicode.IsUpper,
	"xdigit": func(r rune) bool { return strings.ContainsRune("0123456789abcdefABCDEF", r) },
}
