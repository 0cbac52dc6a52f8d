package local

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestInternalScreenText(t *testing.T) {
	for _, c := range []struct{ claim, in, want string }{
		{"plain text stays", "a\tb\nc\n", "a\tb\nc\n"},
		{"nothing stays nothing", "", ""},
		{"the last frame is shown", "10%\r20%\r100%\n", "100%\n"},
		{"a frame without a line ending", "10%\r20%\r", "20%"},
		{"a shorter frame leaves the rest", "abcdef\rxy\n", "xycdef\n"},
		{"a frame that erases first leaves nothing", "abcdef\r\x1b[Kxy\n", "xy\n"},
		{"a frame of wide characters", "käse\rkö\n", "köse\n"},
		{"CRLF is kept", "a\r\nb\r\n", "a\r\nb\r\n"},
		{"CRLF is kept beside frames", "a\rb\r\nc\r\n", "b\r\nc\r\n"},
		{"many returns before an ending are one", "a\r\r\r\nb", "a\r\nb"},
		{"a backspace steps back", "abc\b\bX\n", "aXc\n"},
		{"overstruck text is shown once", "b\bbo\bold\bd", "bold"},
		{"backspaces stop at the start", "a\b\b\bX", "X"},
		{"colours are gone", "\x1b[1;31mred\x1b[0m and \x1b[38;2;1;2;3mmore\x1b[m\n", "red and more\n"},
		{"colours with one control character", "\u009b31mred\u009b0m", "red"},
		{"private modes are gone", "\x1b[?25lx\x1b[?25h", "x"},
		{"a title ended by BEL", "\x1b]0;title\ax", "x"},
		{"a title ended by ST", "\x1b]0;title\x1b\\x", "x"},
		{"a title in single control characters", "\u009d0;title\u009cx", "x"},
		{"a link shows its text", "\x1b]8;;http://h/\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"a device control string", "\x1bPq#0\x1b\\x", "x"},
		{"a character set", "\x1b(Bx", "x"},
		{"keypad mode", "\x1b=x\x1b>", "x"},
		{"one character behind escape", "\x1bMx\x1b7y", "xy"},
		{"bells are gone", "a\ab", "ab"},
		{"NUL is shown as not to be shown", "a\x00b", "a\uFFFDb"},
		{"a torn escape", "x\x1b", "x"},
		{"a torn control sequence", "x\x1b[", "x"},
		{"torn parameters", "x\x1b[31", "x"},
		{"a torn sequence ends with its line", "x\x1b[31\ny", "x\ny"},
		{"a torn title takes its line only", "x\x1b]0;tit\ny", "x\ny"},
		{"a title torn by another sequence", "\x1b]0;tit\x1b[31mx", "x"},
		{"an escape behind an escape", "\x1b\x1b[31mx", "x"},
		{"to the right", "a\x1b[2Cb", "a  b"},
		{"to the left", "abc\x1b[2DX", "aXc"},
		{"left stops at the start", "abc\x1b[99DX", "Xbc"},
		{"to a column", "abc\x1b[2GX", "aXc"},
		{"erase to the end", "abc\x1b[2D\x1b[K", "a"},
		{"erase to the start", "abc\x1b[2D\x1b[1K", "  c"},
		{"erase all", "abc\x1b[2K\rx", "x"},
		{"a number too long moves no further than the limit", "a\x1b[99999999999999999999Cb", "a" + strings.Repeat(" ", furthest-1) + "b"},
		{"the greatest number does too", "a\x1b[9223372036854775807Cb", "a" + strings.Repeat(" ", furthest-1) + "b"},
		{"columns too far are the limit", "\x1b[99999999999999999999Gb", strings.Repeat(" ", furthest) + "b"},
		{"left by too much is the start", "ab\x1b[99999999999999999999DX", "Xb"},
		{"beyond the limit nothing moves right", strings.Repeat("x", furthest+9) + "\x1b[5Cy", strings.Repeat("x", furthest+9) + "y"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if got := screenText(c.in); got != c.want {
				t.Errorf("%q is shown as %q, want %q", c.in, got, c.want)
			}
		})
	}
}

// What is shown is valid, holds no control characters but those of a line's
// layout and ending, has as many lines, and is shown as itself.
func FuzzScreenText(f *testing.F) {
	for _, seed := range []string{"a\rb\r\n", "\x1b[31mx\x1b[", "a\b\b\x1b[9C\x1b[1Kz\u009b5Gy", "\x1b]0;t\ax\x00", "\x1b[9223372036854775807Cx"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = validText([]byte(s))
		shown := screenText(s)
		if !utf8.ValidString(shown) || strings.Count(shown, "\n") != strings.Count(s, "\n") {
			t.Errorf("%q is shown as %q", s, shown)
		}
		if strings.ContainsFunc(strings.ReplaceAll(shown, "\r\n", "\n"), isControl) {
			t.Errorf("%q is shown with control characters: %q", s, shown)
		}
		if again := screenText(shown); again != shown {
			t.Errorf("%q is shown as %q, and that as %q", s, shown, again)
		}
	})
}
