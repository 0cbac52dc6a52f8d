package tools

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestLossless(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing is lost", `{"a":[1,"x",{"a":null}],"b":{"a":-1.5e3}}`, ""},
		{"the same name in two objects", `[{"a":1},{"a":2}]`, ""},
		{"a name that is a value too", `{"a":"a","b":"a"}`, ""},
		{"a list of names", `{"a":["b","b"],"b":1}`, ""},
		{"a member given twice", `{"path":"x","path":"y"}`, `"path" is given twice`},
		{"a member given twice in another spelling", `{"path":"x","p\u0061th":"y"}`, `"path" is given twice`},
		{"a member given twice further in", `{"a":[{"b":{"c":1,"d":2,"c":3}}]}`, `"c" is given twice`},
		{"a member given twice behind a nested one", `{"a":{"b":1},"a":2}`, `"a" is given twice`},
		{"half a character", `{"a":"x\ud800y"}`, `\ud800 is half a character`},
		{"the second half alone", `{"a":"\udc00"}`, `half a character`},
		{"two first halves", `{"a":"\ud800\ud800"}`, `half a character`},
		{"half a character in a name", `{"\ud83d":1}`, `half a character`},
		{"a whole pair", `{"a":"\ud83d\ude00"}`, ""},
		{"a backslash before what looks like an escape", `{"a":"\\ud800"}`, ""},
		{"quotes in a string", `{"a":"\",\"a\":","b":1}`, ""},
		{"a number beyond all", `{"a":1e999}`, "too large"},
		{"a long integer", `{"a":123456789012345678901234567890}`, ""},
		{"a single value", `7`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := lossless(json.RawMessage(c.text))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.text, err, c.want)
			}
		})
	}
}

// No valid JSON breaks the scanner, and what it lets through decodes to the
// same members again.
func FuzzLossless(f *testing.F) {
	f.Add(`{"a":[1,"x",{"a":null}],"b":{"a":-1.5e3}}`)
	f.Add(`{"path":"x","p\u0061th":"y\ud800"}`)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		if lossless(json.RawMessage(text)) != nil {
			return
		}
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Errorf("it was let through, but %v", err)
		}
	})
}
