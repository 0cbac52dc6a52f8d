package local

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// nameText is a file name as JSON text: each byte that is not UTF-8 is written
// \xNN. exact holds the bytes in base64 when the text is not the name itself.
func nameText(name string) (text, exact string) {
	if utf8.ValidString(name) {
		return name, ""
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		if r == utf8.RuneError && size == 1 {
			b.WriteString(`\x` + strconv.FormatUint(uint64(name[i]), 16))
		} else {
			b.WriteString(name[i : i+size])
		}
		i += size
	}
	return b.String(), base64.StdEncoding.EncodeToString([]byte(name))
}

// nameFromText undoes nameText. ok says that name has such an escape.
func nameFromText(text string) (name string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if c, err := strconv.ParseUint(escapeAt(text, i), 16, 8); err == nil && c >= utf8.RuneSelf {
			b.WriteByte(byte(c))
			i += 3
			ok = true
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String(), ok
}

// escapeAt returns the two digits of an escape \xNN at i.
func escapeAt(text string, i int) string {
	if i+4 <= len(text) && text[i] == '\\' && text[i+1] == 'x' {
		return text[i+2 : i+4]
	}
	return ""
}

// shownPath is a path on one line of a model's text.
func shownPath(path string) string {
	text, _ := nameText(path)
	if strings.ContainsFunc(text, unicode.IsControl) {
		return strconv.Quote(text)
	}
	return text
}

// twin returns the one entry of dir that name means although it is spelled
// differently: with the bytes behind \xNN, or in another Unicode form.
func twin(dir, name string) (string, bool) {
	if exact, ok := nameFromText(name); ok {
		if _, err := os.Lstat(filepath.Join(dir, exact)); err == nil {
			return exact, true
		}
	}
	if isASCII(name) {
		return "", false
	}
	return otherForm(dir, name)
}

func otherForm(dir, name string) (found string, ok bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", false
	}
	want := norm.NFC.String(name)
	for _, e := range entries {
		if isASCII(e.Name()) || norm.NFC.String(e.Name()) != want {
			continue
		}
		if ok {
			return "", false
		}
		found, ok = e.Name(), true
	}
	return found, ok
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// exactName returns the name behind what nameText returned.
func exactName(text, exact string) (string, error) {
	if exact == "" {
		return text, nil
	}
	raw, err := base64.StdEncoding.DecodeString(exact)
	return string(raw), err
}
