package runtime

import (
	"strings"
	"testing"
)

func TestSurvey(t *testing.T) {
	deep := strings.Repeat("(", maxBrackets+1)
	for _, c := range []struct {
		claim, source string
		want          findings
	}{
		{"brackets in strings do not nest", `"` + deep + `"; '` + deep + `'`, findings{}},
		{"brackets in comments do not nest", "// " + deep + "\n/* " + deep + " */", findings{}},
		{"brackets in templates do not nest", "`" + deep + "`", findings{}},
		{"brackets in a template's expression nest", "`${" + deep, findings{tooDeep: maxBrackets + 3}},
		{"brackets in a regular expression do not nest", "x = /[" + deep + "/]/", findings{}},
		{"a division starts no regular expression", "a / b; " + deep, findings{tooDeep: maxBrackets + 8}},
		{"a class of a regular expression may hold a slash", "/[/\"]/.test(a)", findings{}},
		{"an export is found at the start of a statement", "a()\nexport const b = 1", findings{exports: []int{4}}},
		{"export is no keyword inside", "x.export; ({export: 1}); 'export '", findings{}},
		{"an import is found", "import a from 'b'", findings{imports: []int{0}}},
		{"type arguments of a call are found", "f<string>(x)", findings{typeArguments: true}},
		{"a comparison is none", "a < b && c > (d)", findings{}},
		{"a comparison without spaces is none", "if (a<b) c()", findings{}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got := survey(c.source)
			if got.tooDeep != c.want.tooDeep || got.typeArguments != c.want.typeArguments || !same(got.exports, c.want.exports) || !same(got.imports, c.want.imports) {
				t.Errorf("found %+v; want %+v", got, c.want)
			}
		})
	}
}

func same(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestUnfence(t *testing.T) {
	for _, c := range []struct{ claim, text, want string }{
		{"no fence is no change", "return 1", "return 1"},
		{"lines keep their numbers", "```ts\nreturn 1\n```\n", "\nreturn 1\n"},
		{"blank lines before it count too", "\n\n```js\nreturn 1\n```", "\n\n\nreturn 1\n"},
		{"tildes are a fence", "~~~\nx\n~~~", "\nx\n"},
		{"a longer fence needs as long an end", "````\n```\nx\n````", "\n```\nx\n"},
		{"an open fence is left alone", "```ts\nx", "```ts\nx"},
		{"a template at the start is no fence", "`a`", "`a`"},
		{"an interpreter's line becomes a comment", "#!/usr/bin/env node\nx", "///usr/bin/env node\nx"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if got := unfence(c.text); got != c.want {
				t.Errorf("unfence(%q) is %q; want %q", c.text, got, c.want)
			}
		})
	}
}

func TestCompilePositions(t *testing.T) {
	for _, c := range []struct {
		claim, source string
		line, column  int
	}{
		{"plain JavaScript, first line", "let = = 1", 1, 7},
		{"TypeScript, later line", "const a: number = 1\nlet é: = 2", 2, 8},
		{"a column counts UTF-16 units", "const s = '😀'; let x: = 5", 1, 24},
		{"an early error of the compiler", "let a = 1\nlet a = 2", 2, 5},
		{"a bracket too many", "const a = 1\n}", 2, 1},
		{"a bracket too few", "if (a) {", 1, 9},
	} {
		t.Run(c.claim, func(t *testing.T) {
			_, failure := compile("program.ts", c.source, 1<<20)
			if failure == nil || failure.Kind != Syntax || failure.Line != c.line || failure.Column != c.column {
				t.Errorf("failure is %+v; want a syntax failure at %d:%d", failure, c.line, c.column)
			}
		})
	}
}

// FuzzCompile states: whatever the source is, compiling it ends with a program
// or a syntax failure, and never with a panic.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"return 1", "}); x(); (()=>{", "`${", "/[/", "export default", "enum A {", "```\nx\n```", "for await (x of y) z", "a<b>(c)", "#!x", "class A { #x; static {} }"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) > 2000 {
			return
		}
		c, failure := compile("program.ts", source, 1<<20)
		if (c == nil) == (failure == nil) {
			t.Fatalf("compiling %q gives both or neither of program and failure: %v", source, failure)
		}
		if failure != nil && failure.Kind != Syntax {
			t.Fatalf("compiling %q fails as %s", source, failure.Kind)
		}
	})
}
