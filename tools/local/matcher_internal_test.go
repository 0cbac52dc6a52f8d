package local

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func FuzzScanFindsWhatLineByLineMatchingFinds(f *testing.F) {
	f.Add("a.*b", "xab\r\ncab\n\nb")
	f.Add("(?i)k|s$", "\u212a\nS\r\nk")
	f.Add("^$", "\n\r\n\n")
	f.Add(`\bfoo\b|^bar`, "foo\nbar\nbarfoo")
	f.Add("[^a]b", "a\nb\ncb")
	f.Add("$^", "\r")
	f.Add(`(?i)needle|(?:thread)+x`, "NEEDLE\nthreadthreadx")
	f.Add(`(ab){2,}c?`, "abab\nab")
	f.Fuzz(func(t *testing.T, pattern, content string) {
		re, err := regexp.Compile(pattern)
		m, refused := newMatcher(pattern, false, false)
		if err != nil || refused != nil {
			return
		}
		var want, got []int
		i := -1
		for l := range strings.Lines(content) {
			i++
			if l, ended := strings.CutSuffix(l, "\n"); re.MatchString(strings.TrimSuffix(l, "\r")) && ended || !ended && re.MatchString(l) {
				want = append(want, i)
			}
		}
		m.scan([]byte(content), nil, func(l lineIn) bool {
			got = append(got, strings.Count(content[:l.start], "\n"))
			return true
		})
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q in %q: lines %v, want %v", pattern, content, got, want)
		}
	})
}

func TestRequiredTexts(t *testing.T) {
	for pattern, want := range map[string]string{
		"foo":           "[foo] false true",
		"foo.*barbaz":   "[barbaz] false false",
		"(foo)+x":       "[foo] false false",
		"foobar|foobaz": "[fooba] false false",
		"one|two":       "[one two] false false",
		"(?i)Foo":       "[foo] true false",
		"(?i)naïve":     "[] false false",
		"a*":            "[] false false",
		"(x)?y":         "[y] false false",
		"[ab]c{2}":      "[c] false false",
	} {
		m, err := newMatcher(pattern, false, false)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %v %v", m.required, m.folded, m.exact); got != want {
			t.Errorf("%s: %s, want %s", pattern, got, want)
		}
	}
}
