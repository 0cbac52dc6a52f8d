package review_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/review"
)

type settings struct {
	Name  string   `yaml:"name"`
	Tools []string `yaml:"tools"`
	Inner *struct {
		Count int `yaml:"count"`
	} `yaml:"inner"`
}

func TestDecodeRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for _, c := range []struct {
		name, text string
		line       int
		reason     string
	}{
		{"an unknown key", "name: a\nnmae: b\n", 2, "nmae"},
		{"an unknown key inside", "inner:\n  cuont: 1\n", 2, "cuont"},
		{"a key given twice", "name: a\nname: b\n", 2, "name"},
		{"a value of another type", "tools: 3\n", 1, ""},
		{"a number that is none", "inner:\n  count: many\n", 2, ""},
		{"no YAML", "name: [a\n", 1, ""},
		{"an alias", "name: &x a\ntools: [*x]\n", 1, "alias"},
		{"a second document", "name: a\n---\nname: b\n", 0, "document"},
		{"deep nesting", "tools: " + strings.Repeat("[", 100_000), 0, "nested"},
		{"deep indentation", deepIndentation(400), 0, ""},
		{"a large file", "name: " + strings.Repeat("a", 300<<10), 0, "bytes"},
		{"a list at the top", "- a\n", 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s settings
			err := review.Decode("file.yaml", []byte(c.text), &s)
			var at *review.FileError
			if !errors.As(err, &at) || at.Name != "file.yaml" {
				t.Fatalf("error is %v, want a *FileError", err)
			}
			if c.line > 0 && at.Line != c.line || !strings.Contains(at.Reason, c.reason) {
				t.Errorf("error is %v, want line %d and %q", err, c.line, c.reason)
			}
		})
	}
}

func deepIndentation(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestDecodeReadsWhatItUnderstands(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"an empty file", "", ""},
		{"comments alone", "# nothing\n", ""},
		{"a value is taken", "name: after # why\n", "after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s settings
			if err := review.Decode("file.yaml", []byte(c.text), &s); err != nil || s.Name != c.want {
				t.Errorf("%+v, %v; want %s", s, err, c.want)
			}
		})
	}
}

// Whatever the file holds, it is read or refused, in bounded time and memory.
func FuzzDecode(f *testing.F) {
	f.Add("name: a\ntools: [b, c]\ninner: {count: 1}\n")
	f.Add("? [a]\n: |\n  b\n")
	f.Fuzz(func(t *testing.T, text string) {
		var s settings
		var at *review.FileError
		if err := review.Decode("x", []byte(text), &s); err != nil && !errors.As(err, &at) {
			t.Errorf("%v is no *FileError", err)
		}
	})
}
