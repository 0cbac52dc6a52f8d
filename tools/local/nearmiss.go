package local

import (
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// nearLimit is the largest text that is searched for what old_string may have
// meant.
const nearLimit = 4 << 20

// nearMiss is the error for an old_string that is not in the text, with the
// place that differs least from it.
func nearMiss(in editArgs, plain []byte) error {
	path, old := shownPath(in.FilePath), strings.ReplaceAll(in.OldString, "\r\n", "\n")
	if len(plain) <= nearLimit && len(old) <= nearLimit {
		text := string(plain)
		for _, f := range folds {
			if at, ok := f.find(text, old); ok {
				return failWith(EditNotFound, map[string]any{"line": at.line, "differs_in": f.what},
					"%s: old_string is not in the file. Line %d differs from it only in %s; there stands %s", path, at.line, f.what, f.show(at.text))
			}
		}
		if at, ok := commonStart(text, old); ok {
			return failWith(EditNotFound, map[string]any{"line": at.line},
				"%s: old_string is not in the file. It agrees with the file up to line %d, where the file has %s", path, at.line, strconv.Quote(at.text))
		}
	}
	return fail(EditNotFound, "%s: old_string is not in the file, and nothing there is like it; read the file again and copy the text exactly", path)
}

// place is a line and the text that stands from there on.
type place struct {
	line int
	text string
}

// fold makes texts equal that differ only in one respect.
type fold struct {
	what string
	line func(string) string
	show func(string) string
}

var folds = []fold{
	{"the Unicode form of its characters", norm.NFC.String, strconv.QuoteToASCII},
	{"its quotation marks or dashes", quotes.Replace, strconv.QuoteToASCII},
	{"white space", spaces, strconv.Quote},
	{"more than one of white space, quotation marks and Unicode form", func(s string) string { return spaces(quotes.Replace(norm.NFC.String(s))) }, strconv.QuoteToASCII},
}

var quotes = strings.NewReplacer(
	"\u2018", "'", "\u2019", "'", "\u201a", "'", "\u201b", "'", "\u2032", "'",
	"\u201c", `"`, "\u201d", `"`, "\u201e", `"`, "\u201f", `"`, "\u2033", `"`, "\u00ab", `"`, "\u00bb", `"`,
	"\u2010", "-", "\u2011", "-", "\u2012", "-", "\u2013", "-", "\u2014", "-", "\u2212", "-",
)

func spaces(s string) string { return strings.Join(strings.Fields(s), " ") }

// find looks for old in text, both folded line by line.
func (f fold) find(text, old string) (place, bool) {
	folded := f.lines(strings.Trim(old, "\n"))
	if folded == "" {
		return place{}, false
	}
	at := strings.Index(f.lines(text), folded)
	if at < 0 {
		return place{}, false
	}
	first := strings.Count(f.lines(text)[:at], "\n")
	return lineOf(text, first, strings.Count(folded, "\n")+1), true
}

func (f fold) lines(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = f.line(l)
	}
	return strings.Join(lines, "\n")
}

// shownMiss is how much of the text is quoted.
const shownMiss = 400

func lineOf(text string, first, count int) place {
	lines := strings.Split(text, "\n")
	there := strings.Join(lines[first:min(len(lines), first+count)], "\n")
	if len(there) > shownMiss {
		there = there[:shownMiss] + "…"
	}
	return place{first + 1, strings.ToValidUTF8(there, "\uFFFD")}
}

// commonStart finds the lines that agree with the first lines of old, white
// space aside, for longest, and returns the first that does not agree.
func commonStart(text, old string) (best place, ok bool) {
	f := fold{line: spaces}
	lines, want := strings.Split(f.lines(text), "\n"), strings.Split(f.lines(strings.Trim(old, "\n")), "\n")
	longest := 0
	for i := range lines {
		n := 0
		for n < len(want) && i+n < len(lines) && lines[i+n] == want[n] {
			n++
		}
		if n > longest && want[0] != "" && i+n < len(lines) {
			longest, ok, best = n, true, lineOf(text, i+n, 1)
		}
	}
	return best, ok
}
