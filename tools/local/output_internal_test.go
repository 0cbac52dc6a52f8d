package local

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dsh-run/dsh/tools"
)

// placed is n bytes of which each stretch tells its place.
func placed(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + (i/7+i/1009)%26)
	}
	return b
}

// writeChunks writes b in pieces of n bytes.
func writeChunks(o *output, b []byte, n int) {
	for len(b) > 0 {
		n = min(n, len(b))
		_, _ = o.Write(b[:n])
		b = b[n:]
	}
}

func TestInternalOutputKeepsBothEnds(t *testing.T) {
	for _, c := range []struct {
		claim string
		size  int
		chunk int
	}{
		{"nothing", 0, 1},
		{"one byte", 1, 1},
		{"the limit of the tail", tailLimit, 1000},
		{"more than the tail", tailLimit + 1, 999},
		{"all but a byte of the head", headLimit - 1, 4096},
		{"the limit of the head", headLimit, 4096},
		{"one byte over the head", headLimit + 1, 4096},
		{"the ends overlap", headLimit + tailLimit/2, 32 << 10},
		{"a middle is left out", headLimit + 3*tailLimit, 32 << 10},
		{"one write of all", headLimit + 3*tailLimit, headLimit + 3*tailLimit},
	} {
		t.Run(c.claim, func(t *testing.T) {
			all, o := placed(c.size), output{}
			writeChunks(&o, all, c.chunk)
			if o.size() != int64(c.size) {
				t.Errorf("size is %d, want %d", o.size(), c.size)
			}
			if end := o.end(); !bytes.HasSuffix(all, end) || len(end) < min(c.size, tailLimit) || len(end) > 4*tailLimit {
				t.Errorf("the end has %d bytes and ends all: %t", len(end), bytes.HasSuffix(all, end))
			}
			p := o.take(true)
			if p.size != int64(c.size) || !bytes.Equal(p.head, all[:min(c.size, headLimit)]) {
				t.Errorf("the portion has size %d and a head of %d bytes", p.size, len(p.head))
			}
			if whole := c.size <= headLimit; p.whole() != whole || whole != (p.tail == nil) {
				t.Errorf("whole is %t, with a tail of %d bytes", p.whole(), len(p.tail))
			}
			if !p.whole() && !bytes.Equal(p.tail, all[c.size-tailLimit:]) {
				t.Errorf("the tail of %d bytes is not the end", len(p.tail))
			}
		})
	}
}

func TestInternalPortionsLoseAndRepeatNothing(t *testing.T) {
	for _, c := range []struct {
		claim  string
		writes []string
		ended  int // the portion from which on the stream has ended
		want   []string
	}{
		{"a portion for each write", []string{"a", "b"}, 1, []string{"a", "b"}},
		{"nothing new is nothing", []string{"a", "", ""}, 2, []string{"a", "", ""}},
		{"a character of two bytes", []string{"a\xc3", "\xa9b"}, 1, []string{"a", "éb"}},
		{"a character of four bytes, byte by byte", []string{"\xf0", "\x9f", "\x98", "\x80"}, 4, []string{"", "", "", "😀"}},
		{"a character that never ends comes at the end", []string{"a\xe2\x82", ""}, 1, []string{"a", "\xe2\x82"}},
		{"a torn character is not held once it cannot be one", []string{"a\xe2", "b"}, 1, []string{"a", "\xe2b"}},
		{"bytes that begin nothing are not held", []string{"a\xff", "\x80"}, 2, []string{"a\xff", "\x80"}},
		{"a stream that has ended holds nothing", []string{"a\xc3"}, 0, []string{"a\xc3"}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			var o output
			for i, s := range c.writes {
				_, _ = o.Write([]byte(s))
				p := o.take(i >= c.ended)
				if string(p.head) != c.want[i] || p.size != int64(len(c.want[i])) || !p.whole() {
					t.Errorf("portion %d is %q of %d bytes, want %q", i, p.head, p.size, c.want[i])
				}
			}
		})
	}
}

func TestInternalLongPortionsLoseAndRepeatNothing(t *testing.T) {
	all := bytes.Repeat([]byte("€uro,"), 3*tailLimit/7)
	for _, chunk := range []int{1, 2, 5, 1000, 2*tailLimit + 1} {
		var o output
		var got []byte
		for rest, n := all, 0; len(rest) > 0; n++ {
			size := min(chunk, len(rest))
			_, _ = o.Write(rest[:size])
			rest = rest[size:]
			if chunk > 2 || n%7 == 0 {
				p := o.take(false)
				if !p.whole() || !utf8.Valid(p.head) {
					t.Fatalf("chunks of %d: a portion of %d bytes has %d of them, valid: %t", chunk, p.size, len(p.head), utf8.Valid(p.head))
				}
				got = append(got, p.head...)
			}
		}
		if got = append(got, o.take(true).head...); !bytes.Equal(got, all) {
			t.Errorf("chunks of %d: the portions have %d bytes, want the %d that were written", chunk, len(got), len(all))
		}
	}
}

func TestInternalPortionAfterALongOneIsWhole(t *testing.T) {
	var o output
	writeChunks(&o, placed(headLimit+tailLimit), 1<<20)
	_, _ = o.Write([]byte("\xe2\x82"))
	first := o.take(false)
	if first.size != headLimit+tailLimit || first.tail[len(first.tail)-1] >= utf8.RuneSelf {
		t.Errorf("the first has %d bytes and ends in %x", first.size, first.tail[len(first.tail)-1])
	}
	_, _ = o.Write([]byte("\xac!"))
	if second := o.take(true); string(second.head) != "€!" || !second.whole() {
		t.Errorf("the second is %q of %d bytes", second.head, second.size)
	}
}

func TestInternalOutputIsBoundedInMemory(t *testing.T) {
	o := output{file: spillFile{dir: t.TempDir(), name: "bash-stdout"}}
	defer o.close()
	chunk := placed(1 << 20)
	for written := 0; written < 100<<20; written += len(chunk) {
		_, _ = o.Write(chunk)
		if held := cap(o.head) + cap(o.tail.kept); held > 2*headLimit+8*tailLimit {
			t.Fatalf("%d bytes are held after %d", held, written)
		}
	}
	if o.size() != 100<<20 {
		t.Errorf("size is %d", o.size())
	}
	o.close()
	path, err := o.saved()
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || info.Size() != spillLimit {
		t.Fatalf("saved are %v, want %d bytes (%v, %v)", info, spillLimit, err, statErr)
	}
}

func TestInternalOutputSaves(t *testing.T) {
	for _, c := range []struct {
		claim string
		run   func(o *output, all []byte)
		size  int
		saved bool
	}{
		{"nothing of what fits", func(o *output, all []byte) { writeChunks(o, all, 1000) }, headLimit, false},
		{"all of what does not fit", func(o *output, all []byte) { writeChunks(o, all, 100_000) }, headLimit + 1, true},
		{"all of one great write", func(o *output, all []byte) { _, _ = o.Write(all) }, headLimit + 1, true},
		{"what came before and what comes after", func(o *output, all []byte) {
			_, _ = o.Write(all[:10])
			o.save()
			_, _ = o.Write(all[10:])
		}, 100, true},
		{"all of a stream that is taken in portions", func(o *output, all []byte) {
			o.save()
			_, _ = o.Write(all[:10])
			o.take(false)
			_, _ = o.Write(all[10:])
			o.save()
			o.take(false)
		}, 100, true},
		{"all when it is saved after the end", func(o *output, all []byte) {
			_, _ = o.Write(all)
			o.close()
			o.save()
		}, 100, true},
		{"nothing of nothing", func(o *output, _ []byte) { o.save() }, 0, false},
	} {
		t.Run(c.claim, func(t *testing.T) {
			o, all := output{file: spillFile{dir: t.TempDir(), name: "bash-stdout"}}, placed(c.size)
			c.run(&o, all)
			o.close()
			path, err := o.saved()
			if err != nil || (path != "") != c.saved {
				t.Fatalf("saved in %q, %v", path, err)
			}
			if !c.saved {
				return
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, all) {
				t.Errorf("the file has %d bytes, want the %d that were written (%v)", len(got), len(all), err)
			}
		})
	}
}

func TestInternalOutputSavedAfterTheEndLeavesNoFileOpen(t *testing.T) {
	o := output{file: spillFile{dir: t.TempDir(), name: "bash-stdout"}}
	_, _ = o.Write([]byte("x"))
	o.close()
	o.save()
	if path, err := o.saved(); path == "" || err != nil || o.file.file != nil {
		t.Errorf("saved in %q (%v), open: %t", path, err, o.file.file != nil)
	}
}

func TestInternalOutputWithoutAPlaceIsNotSaved(t *testing.T) {
	for _, c := range []struct {
		claim, dir string
		fails      bool
	}{
		{"no session", "", false},
		{"a directory that is not there", filepath.Join(t.TempDir(), "none"), true},
	} {
		t.Run(c.claim, func(t *testing.T) {
			o := output{file: spillFile{dir: c.dir, name: "bash-stdout"}}
			if n, err := o.Write(placed(headLimit + 1)); n != headLimit+1 || err != nil {
				t.Errorf("the write gave %d, %v", n, err)
			}
			if path, err := o.saved(); path != "" || (err != nil) != c.fails {
				t.Errorf("saved in %q, %v", path, err)
			}
		})
	}
}

func TestInternalOutputValue(t *testing.T) {
	for _, c := range []struct {
		claim string
		in    portion
		want  outputValue
	}{
		{"nothing", portion{}, outputValue{}},
		{"an end in a torn character is replaced, and said", portion{5, []byte("aé\xe2\x80"), nil}, outputValue{Text: "aé\uFFFD", Bytes: 5, Encoding: binaryEncoding}},
		{"text of many bytes to a character", portion{3, []byte("aé"), nil}, outputValue{Text: "aé", Bytes: 3}},
		{"what is not UTF-8 is replaced, and said", portion{3, []byte("a\xffb"), nil}, outputValue{Text: "a\uFFFDb", Bytes: 3, Encoding: binaryEncoding}},
		{"a NUL is binary", portion{3, []byte("a\x00b"), nil}, outputValue{Text: "a\x00b", Bytes: 3, Encoding: binaryEncoding}},
		{"a replacement character that was written is text", portion{3, []byte("\uFFFD"), nil}, outputValue{Text: "\uFFFD", Bytes: 3}},
		{"a cut through characters is not binary", portion{9, []byte("a\xc3"), []byte("\x82\xacb")}, outputValue{Text: "a", Tail: "b", Bytes: 9, Truncated: true}},
		{"a binary tail is binary", portion{9, []byte("a"), []byte("b\xff")}, outputValue{Text: "a", Tail: "b\uFFFD", Bytes: 9, Truncated: true, Encoding: binaryEncoding}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if got := newOutputValue(c.in); got != c.want {
				t.Errorf("the value is %+v, want %+v", got, c.want)
			}
		})
	}
}

// wireSize is what a value takes up in JSON as it is sent.
func wireSize(t *testing.T, v any) int {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Len()
}

func TestInternalFitKeepsJSONUnderTheRoom(t *testing.T) {
	const (
		room  = 256 << 10
		frame = 200 // the names and numbers around the texts of a value
	)
	for _, c := range []struct {
		claim    string
		out, err string
		cutOut   bool
		cutErr   bool
	}{
		{"both fit", "a", "b", false, false},
		{"both empty", "", "", false, false},
		{"stdout is long", strings.Repeat("x", 2*room), "b", true, false},
		{"stderr is long", "a", strings.Repeat("x", 2*room), false, true},
		{"both are long", strings.Repeat("x", 2*room), strings.Repeat("y", 2*room), true, true},
		{"quotes take two", strings.Repeat(`"\`, room/2), "b", true, false},
		{"line endings take two", strings.Repeat("\n", room), "b", true, false},
		{"separators take six", strings.Repeat("\u2028", room/3), "b", true, false},
		{"characters stay whole", strings.Repeat("€", room), strings.Repeat("😀", room), true, true},
		{"brackets take one", strings.Repeat("<&>", room/12), "", false, false},
	} {
		t.Run(c.claim, func(t *testing.T) {
			out := outputValue{Text: c.out, Bytes: int64(len(c.out))}
			err := outputValue{Text: c.err, Bytes: int64(len(c.err))}
			fit(&out, &err, room)
			if size := wireSize(t, out) + wireSize(t, err); size > room+2*frame {
				t.Errorf("the JSON has %d bytes, the room is %d", size, room)
			}
			for _, v := range []struct {
				name string
				got  outputValue
				all  string
				cut  bool
			}{{"stdout", out, c.out, c.cutOut}, {"stderr", err, c.err, c.cutErr}} {
				if v.got.Truncated != v.cut || v.cut == (v.got.Text == v.all) {
					t.Errorf("%s: truncated is %t, want %t; %d of %d bytes", v.name, v.got.Truncated, v.cut, len(v.got.Text), len(v.all))
				}
				if !strings.HasPrefix(v.all, v.got.Text) || !strings.HasSuffix(v.all, v.got.Tail) || v.cut != (v.got.Tail != "") {
					t.Errorf("%s: text or tail (%d bytes) are not its ends", v.name, len(v.got.Tail))
				}
				if !utf8.ValidString(v.got.Text) || !utf8.ValidString(v.got.Tail) {
					t.Errorf("%s: a character is split", v.name)
				}
			}
		})
	}
}

func TestInternalFitKeepsTheWorstOutputUnderTheLimitOfAValue(t *testing.T) {
	worst := newOutputValue(portion{headLimit + tailLimit, bytes.Repeat([]byte{1}, headLimit), bytes.Repeat([]byte{2}, tailLimit)})
	a, b := worst, worst
	fit(&a, &b, valueRoom)
	if size := wireSize(t, shellValue{Stdout: a, Stderr: b}); size > 16<<20 {
		t.Errorf("the value has %d bytes of JSON", size)
	}
}

func TestInternalTimeout(t *testing.T) {
	ms := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		claim string
		ms    *int64
		want  time.Duration
		notes int
		code  tools.Code
	}{
		{"none is the default", nil, defaultTimeout, 0, ""},
		{"one millisecond", ms(1), time.Millisecond, 0, ""},
		{"the longest", ms(600_000), maxTimeout, 0, ""},
		{"one more is clamped, and said", ms(600_001), maxTimeout, 1, ""},
		{"the greatest number is clamped", ms(1<<63 - 1), maxTimeout, 1, ""},
		{"zero is refused", ms(0), 0, 0, tools.InvalidArgs},
		{"less is refused", ms(-1), 0, 0, tools.InvalidArgs},
		{"the least number is refused", ms(-1 << 63), 0, 0, tools.InvalidArgs},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got, notes, err := timeoutOf(c.ms, defaultTimeout)
			code := tools.Code("")
			if own, ok := err.(*tools.Error); ok {
				code = own.Code
			}
			if got != c.want || len(notes) != c.notes || code != c.code || (err != nil) != (c.code != "") {
				t.Errorf("it is %v, %q, %v", got, notes, err)
			}
		})
	}
}
