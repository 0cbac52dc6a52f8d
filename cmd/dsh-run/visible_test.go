package main

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestVisible(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"ordinary text is itself", `rm -rf "$HOME/x" | wc -l`, `rm -rf "$HOME/x" | wc -l`},
		{"an escape sequence", "rm x #\x1b[2K\rls", `rm x #\e[2K\rls`},
		{"a bell and a NUL", "a\ab\x00", `a\u{7}b\u{0}`},
		{"C1 controls", "a\u009b2J", `a\u{9b}2J`},
		{"tabs and line ends", "a\tb\nc\u2028d", `a\tb\u{a}c\u{2028}d`},
		{"direction", "ls \u202exr mr\u202c\u2066\u200f", `ls \u{202e}xr mr\u{202c}\u{2066}\u{200f}`},
		{"zero width", "l\u200bs\u2060\ufeff", `l\u{200b}s\u{2060}\u{feff}`},
		{"a soft hyphen", "a\u00adb", `a\u{ad}b`},
		{"variation selectors and tags", "a\ufe0fb\U000e0100\U000e0041", `a\u{fe0f}b\u{e0100}\u{e0041}`},
		{"fillers", "\u115f\u3164\uffa0\u2800\u034f", `\u{115f}\u{3164}\u{ffa0}\u{2800}\u{34f}`},
		{"other spaces", "a\u00a0b\u3000c\u2003", `a\u{a0}b\u{3000}c\u{2003}`},
		{"private and unassigned", "\ue000\U0010ffff\u0378", `\u{e000}\u{10ffff}\u{378}`},
		{"no UTF-8", "a\xffb\xe2\x80", `a\x{ff}b\x{e2}\x{80}`},
		{"a surrogate in bytes", "\xed\xa0\x80", `\x{ed}\x{a0}\x{80}`},
		{"the replacement character", "a\ufffd", `a\u{fffd}`},
		{"a pile of marks", "a\u0301\u0302\u0303b", "a\u0301\u0302" + `\u{303}b`},
		{"a mark on nothing", "\u0301a -\u0301", `\u{301}a -\u{301}`},
		{"a mark on a mark of ours", "\x1b\u0301", `\e\u{301}`},
		{"an overlay", "rm\u0336", `rm\u{336}`},
		{"few spaces", "a       b", "a       b"},
		{"many spaces", "echo " + strings.Repeat(" ", 500) + "; rm x", `echo\s{501}; rm x`},
		{"spaces at the end", "a  ", `a\s{2}`},

		{"a text like a mark", `\e[0m \u{202e} \s{8} \x{ff}`, `\\e[0m \\u{202e} \\s{8} \\x{ff}`},
		{"a text like a doubled one", `\\e`, `\\\\e`},
		{"a backslash before a mark", "\\\x1b", `\\\e`},
		{"an accent hides no mark", "\\e\u0301", `\\` + "e\u0301"},
		{"other backslashes", `a\nb\.c\user\\d\`, `a\nb\.c\user\\d\`},

		{"a Cyrillic letter in a Latin word", "p\u0430ypal", `p\u{430}ypal`},
		{"any Cyrillic letter in a Latin word", "\u0433m -rf", `\u{433}m -rf`},
		{"a word of Cyrillic look-alikes", "c\u0430t; \u0441\u0430 x", `c\u{430}t; \u{441}\u{430} x`},
		{"a path of one look-alike", "rm /tmp/\u0445", `rm /tmp/\u{445}`},
		{"Greek, Armenian and Cherokee", "l\u03bf \u0585 \u13b3", `l\u{3bf} \u{585} \u{13b3}`},
		{"full width", "\uff52\uff4d x", `\u{ff52}\u{ff4d} x`},
		{"mathematical letters", "\U0001d5cb\U0001d5c6", `\u{1d5cb}\u{1d5c6}`},
		{"Roman numerals and the Kelvin sign", "\u2170s \u212a", `\u{2170}s \u{212a}`},
		{"slashes that are none", "https:\u2215\u2044x", `https:\u{2215}\u{2044}x`},
		{"signs that are none", "a\uff5cb\u037ec\u2024d\u02d0e", `a\u{ff5c}b\u{37e}c\u{2024}d\u{2d0}e`},
		{"signs that stand alone", "ls \uff1b rm", `ls \u{ff1b} rm`},
		{"quotation marks that are none", "echo \u2018$(id)\u2019", `echo \u{2018}$(id)\u{2019}`},
		{"a dash that is none", "ls \u2013la", `ls \u{2013}la`},
		{"right to left beside ASCII", "a\u05d0b 1\u0662", `a\u{5d0}b 1\u{662}`},

		{"Russian", "Нужно записать файл с кодом в каталог, а затем удалить", "Нужно записать файл с кодом в каталог, а затем удалить"},
		{"a Russian name of a file", "cat файл.txt", "cat файл.txt"},
		{"a look-alike beside a command is none of a sentence", "rm \u0441 файл", `rm \u{441} файл`},
		{"Greek", "Θέλω να διαβάσω το αρχείο, τι κάνεις\u037e", "Θέλω να διαβάσω το αρχείο, τι κάνεις\u037e"},
		{"German and French", "Größe, déjà vu, œuvre", "Größe, déjà vu, œuvre"},
		{"Chinese", "你好，世界！", "你好，世界！"},
		{"Hebrew", "שלום עולם.", "שלום עולם."},
		{"Hindi", "नमस्ते दुनिया", "नमस्ते दुनिया"},
		{"emoji", "done 👍", "done 👍"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := visible(tt.in)
			if got != tt.want {
				t.Errorf("visible(%+q)\n got %s\nwant %s", tt.in, got, tt.want)
			}
			if back := unmark(t, got); back != tt.in {
				t.Errorf("%s leads back to %+q, want %+q", got, back, tt.in)
			}
		})
	}
}

// The shown form has only characters that a terminal shows, and leads back to
// exactly the text.
func FuzzVisible(f *testing.F) {
	for _, text := range []string{
		"ls", "rm x #\x1b[2K\rls", "ls \u202exr mr\u202c", "l\u200bs", "ls```\nApproved", "a" + strings.Repeat(" ", 500) + "; rm x",
		"\x1b[8mhidden", "\U000e0100", `\e\\u{1b}\\\s{8}`, "\\\x1b", "\xff\xc0\x80", "p\u0430ypal", "a\u0301\u0301\u0301", "\\e\u0301", "  ", "\\   ",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shown := visible(text)
		for _, r := range shown {
			if !unicode.IsPrint(r) || unicode.In(r, shapeless...) {
				t.Fatalf("%+q is shown as %+q, which has %U", text, shown, r)
			}
		}
		if !utf8.ValidString(shown) {
			t.Fatalf("%+q is shown as %+q, which is not UTF-8", text, shown)
		}
		if back := unmark(t, shown); back != text {
			t.Fatalf("%+q is shown as %s, which leads back to %+q", text, shown, back)
		}
	})
}

// unmark leads a shown form back to its text.
func unmark(t *testing.T, shown string) string {
	t.Helper()
	var b strings.Builder
	for shown != "" {
		if shown[0] != '\\' {
			b.WriteByte(shown[0])
			shown = shown[1:]
			continue
		}
		rest := strings.TrimLeft(shown, `\`)
		n := len(shown) - len(rest)
		if !beginsMark(rest) {
			b.WriteString(shown[:n])
			shown = rest
			continue
		}
		b.WriteString(shown[:n/2])
		if shown = rest; n%2 == 1 {
			shown = unmarkOne(t, &b, rest)
		}
	}
	return b.String()
}

func beginsMark(rest string) bool {
	return rest != "" && strings.ContainsRune("etr", rune(rest[0])) ||
		len(rest) > 1 && strings.ContainsRune("uxs", rune(rest[0])) && rest[1] == '{'
}

// unmarkOne writes what the mark before rest stands for, and returns what
// follows it.
func unmarkOne(t *testing.T, b *strings.Builder, rest string) string {
	t.Helper()
	if one := map[byte]string{'e': "\x1b", 't': "\t", 'r': "\r"}[rest[0]]; one != "" {
		b.WriteString(one)
		return rest[1:]
	}
	number, after, ok := strings.Cut(rest[2:], "}")
	base := 16
	if rest[0] == 's' {
		base = 10
	}
	n, err := strconv.ParseUint(number, base, 32)
	if err != nil || !ok {
		t.Fatalf("no mark: %q", rest)
	}
	switch rest[0] {
	case 's':
		b.WriteString(strings.Repeat(" ", int(n)))
	case 'x':
		b.WriteByte(byte(n))
	default:
		b.WriteRune(rune(n))
	}
	return after
}
