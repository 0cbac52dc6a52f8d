package session_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/session"
)

// secrets are the patterns of the tables below.
var secrets = []session.Pattern{
	{Name: "token", Expr: `sk-test-[^\s']+`},
	{Name: "number", Expr: `^12345678$`},
	{Name: "pem", Expr: `(?s)-----BEGIN.*?END-----`},
	{Name: "flag", Expr: `x[^x]`},
}

func redactor(t testing.TB, patterns ...session.Pattern) *session.Redactor {
	t.Helper()
	r, err := session.NewRedactor(patterns)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// appended returns the data of an event as the log's file has it.
func appended(t testing.TB, log *session.Log, kind session.Type, data any) string {
	t.Helper()
	e, err := log.Append(kind, data)
	if err != nil {
		t.Fatal(err)
	}
	var written string
	err = session.Read(log.Path(), func(read session.Event) bool {
		written = string(read.Data)
		return true
	})
	if err != nil {
		t.Fatalf("the log does not parse: %v", err)
	}
	if string(e.Data) != written {
		t.Errorf("Append returned %s, but wrote %s", e.Data, written)
	}
	return written
}

func TestSecretsAreRedactedByTheStructureOfTheirEvent(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"quotes and backslashes around the secret stay in balance",
			`{"command":"curl -H \"Authorization: Bearer sk-test-AAAA\\\"BBBB\" y"}`,
			`{"command":"curl -H \"Authorization: Bearer [redacted:token] y"}`},
		{"a number that matches becomes a mark", `{"env":{"API_KEY":12345678}}`, `{"env":{"API_KEY":"[redacted:number]"}}`},
		{"a longer number is another one", `{"n":[123456789,-12345678]}`, `{"n":[123456789,-12345678]}`},
		{"a text may span lines", `{"pem":"a\n-----BEGIN..\n..END-----\nb"}`, `{"pem":"a\n[redacted:pem]\nb"}`},
		{"a key is text too", `{"sk-test-AAAA":1,"b":2}`, `{"[redacted:token]":1,"b":2}`},
		{"escapes hide nothing", `{"a":"s\u006b-test-\u0041B"}`, `{"a":"[redacted:token]"}`},
		{"an escaped surrogate pair is one text", `["sk-test-\ud83d\ude00 \ud83d"]`, `["[redacted:token] \ufffd"]`},
		{"a text that matches beside its mark goes whole", `["xay"]`, `["[redacted:flag]y"]`},
		{"what the marks join goes whole", `["xxa"]`, `["[redacted:flag]"]`},
		{"a secret at the top", `"sk-test-A"`, `"[redacted:token]"`},
		{"several in one value", `["sk-test-A",{"k":["sk-test-B",true,null]}]`, `["[redacted:token]",{"k":["[redacted:token]",true,null]}]`},
		{"what does not match keeps its bytes", `{"b":1.50e+3,"a":"\u003cA\/\u2028","c":12345678901234567890,"a":[]}`,
			`{"b":1.50e+3,"a":"\u003cA\/\u2028","c":12345678901234567890,"a":[]}`},
		{"a name of no blob is text", `{"sha256":"sk-test-A","bytes":12345678}`, `{"sha256":"[redacted:token]","bytes":"[redacted:number]"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := create(t)
			log.Redact(redactor(t, secrets...))
			got := appended(t, log, session.ToolCall, json.RawMessage(c.data))
			var gotText, wantText any
			if err := errors.Join(json.Unmarshal([]byte(got), &gotText), json.Unmarshal([]byte(c.want), &wantText)); err != nil {
				t.Fatalf("%v; the line has %s", err, got)
			}
			if c.data == c.want && got != c.want || !sameJSON(t, gotText, wantText) {
				t.Errorf("the line has %s\nwant %s", got, c.want)
			}
		})
	}
}

func sameJSON(t *testing.T, a, b any) bool {
	t.Helper()
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	if err := errors.Join(errX, errY); err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(x, y)
}

func TestPatternsThatCannotBeUsedAreRefusedByName(t *testing.T) {
	for _, c := range []struct {
		name    string
		pattern session.Pattern
		why     string
	}{
		{"a bad expression", session.Pattern{Name: "bad", Expr: `(`}, "missing closing"},
		{"no name", session.Pattern{Expr: `a`}, "the name must"},
		{"a name that would break the mark", session.Pattern{Name: "a]b", Expr: `a`}, "the name must"},
		{"the empty text", session.Pattern{Name: "star", Expr: `a*`}, "the empty text"},
		{"no expression", session.Pattern{Name: "none"}, "the empty text"},
		{"any text", session.Pattern{Name: "dot", Expr: `.+`}, "the mark [redacted:good]"},
		{"a place of no width", session.Pattern{Name: "edge", Expr: `\b`}, "the mark [redacted:good]"},
		{"its own mark", session.Pattern{Name: "own", Expr: `own`}, "the mark [redacted:own]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := session.NewRedactor([]session.Pattern{{Name: "good", Expr: `zz`}, c.pattern})
			var bad *session.PatternError
			if !errors.As(err, &bad) || bad.Index != 1 || bad.Name != c.pattern.Name || !strings.Contains(err.Error(), c.why) {
				t.Errorf("the error is %v, want one of pattern 1, %q, with %q", err, c.pattern.Name, c.why)
			}
		})
	}
}

func TestPermissionsAndNamesOfBlobsAreNeverRedacted(t *testing.T) {
	log := create(t)
	ref, err := log.Put([]byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	log.Redact(redactor(t, session.Pattern{Name: "mode", Expr: `read-only`}, session.Pattern{Name: "hex", Expr: `[0-9a-f]{64}|^7$`}))
	knob := map[string]string{"value": "read-only"}
	for _, kind := range []session.Type{session.SandboxMode, session.ApprovalPolicy, session.PermissionPreset} {
		if got := appended(t, log, kind, knob); got != `{"value":"read-only"}` {
			t.Errorf("%s has %s", kind, got)
		}
	}
	if got := appended(t, log, session.ToolCall, knob); got != `{"value":"[redacted:mode]"}` {
		t.Errorf("another event has %s", got)
	}
	data := struct {
		Ref    session.Ref `json:"ref"`
		Secret string      `json:"secret"`
	}{ref, strings.Repeat("a", 64)}
	want := `{"ref":{"sha256":"` + ref.SHA256 + `","bytes":7},"secret":"[redacted:hex]"}`
	if got := appended(t, log, session.ToolCall, data); got != want {
		t.Errorf("the line has %s, want %s", got, want)
	}
}

func TestBlobsAreRedactedAndVerify(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"text", "set KEY=sk-test-AAAA\\\" y", "set KEY=[redacted:token] y"},
		{"bytes that are no text", "\xff\x00sk-test-A \xfe", "\xff\x00[redacted:token] \xfe"},
		{"JSON by its structure", ` {"k":"s\u006b-test-A\"" , "n":1.0}` + "\n", ` {"k":"[redacted:token]" , "n":1.0}` + "\n"},
		{"nothing to redact", `{"n":1.0}`, `{"n":1.0}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := create(t)
			log.Redact(redactor(t, secrets...))
			given := []byte(c.data)
			ref, err := log.Put(given)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := log.Get(ref); err != nil || string(got) != c.want || ref.Bytes != int64(len(c.want)) {
				t.Errorf("the blob of %d bytes is %q, %v, want %q", ref.Bytes, got, err, c.want)
			}
			if string(given) != c.data {
				t.Errorf("what was given to Put is now %q", given)
			}
		})
	}
}

func TestFollowersAndFilesNeverSeeASecret(t *testing.T) {
	log := create(t)
	log.Redact(redactor(t, secrets...))
	var followed string
	if err := log.Follow(func(e session.Event) { followed += string(e.Data) }); err != nil {
		t.Fatal(err)
	}
	args := json.RawMessage(`{"command":"echo sk-test-AAAA"}`)
	appended(t, log, session.ToolCall, args)
	if _, err := log.Put([]byte("sk-test-AAAA")); err != nil {
		t.Fatal(err)
	}
	if string(args) != `{"command":"echo sk-test-AAAA"}` {
		t.Errorf("the arguments that were given are now %s", args)
	}
	if strings.Contains(followed, "AAAA") || !strings.Contains(followed, "[redacted:token]") {
		t.Errorf("a follower saw %s", followed)
	}
	err := filepath.WalkDir(filepath.Dir(log.Path()), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte("AAAA")) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRedactingEndsWithNilAndDoesNothingWithoutPatterns(t *testing.T) {
	log := create(t)
	for _, r := range []*session.Redactor{redactor(t), nil} {
		log.Redact(redactor(t, secrets...))
		log.Redact(r)
		if got := appended(t, log, session.ToolCall, "sk-test-A"); got != `"sk-test-A"` {
			t.Errorf("the line has %s", got)
		}
	}
}

// Whatever is appended, the line parses, and no text in it matches a pattern.
func FuzzRedact(f *testing.F) {
	f.Add(`{"a":"x\"sk-test-A\\\"B","k12":[12345678,1e5]}`, `sk-\S+`, `\d{4,}`)
	f.Add(`["\ud83d\ude00\u0041AA","xxa"]`, `x[^x]`, `A{2}`)
	f.Add(`{"sha256":"","bytes":1}`, `\W\w`, `[^a]b`)
	f.Add(`"a\u0000\u2028<>&"`, `\x00`, `(?i)U`)
	path := filepath.Join(f.TempDir(), "s.jsonl")
	f.Fuzz(func(t *testing.T, data, one, two string) {
		r, err := session.NewRedactor([]session.Pattern{{Name: "q", Expr: one}, {Name: "z", Expr: two}})
		if err != nil || !json.Valid([]byte(data)) {
			return
		}
		log, err := session.Create(path, "/w", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer os.Remove(path)
		defer log.Close()
		log.Redact(r)
		e, err := log.Append(session.ToolCall, json.RawMessage(data))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := texts(path); err != nil {
			t.Fatalf("the line does not parse: %v", err)
		}
		for _, expr := range []string{one, two} {
			eachText(t, e.Data, func(text string) {
				if regexp.MustCompile(expr).MatchString(text) {
					t.Errorf("%q still matches %q in %s", text, expr, e.Data)
				}
			})
		}
	})
}

// eachText calls f with every string, key and number of raw.
func eachText(t *testing.T, raw []byte, f func(string)) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			if dec.InputOffset() < int64(len(bytes.TrimRight(raw, " \t\r\n"))) {
				t.Fatalf("%v in %s", err, raw)
			}
			return
		}
		switch v := token.(type) {
		case string:
			f(v)
		case json.Number:
			f(v.String())
		}
	}
}
