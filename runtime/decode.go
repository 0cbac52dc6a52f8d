package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// maxDecodeDepth is the nesting that encoding/json accepts as well.
const maxDecodeDepth = 10_000

// maxSafe is the largest integer that a JavaScript number holds exactly,
// together with all smaller ones.
const maxSafe = 1<<53 - 1

var errJSON = errors.New("malformed JSON")

// decoder builds values of the program from JSON, without running any of the
// program's code: setters that it put on Object.prototype see nothing, and
// `__proto__` is a member like any other. Integers beyond ±(2^53-1) become
// strings, because no number could hold them.
type decoder struct {
	vm       *goja.Runtime
	pristine *pristine
	check    func()
	data     string
	pos      int
	depth    int
	nodes    int
}

func (d *decoder) decode(data []byte) (goja.Value, error) {
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
	}
	d.data, d.pos = string(data), 0
	v, err := d.value()
	if err != nil {
		return nil, err
	}
	if d.space(); d.pos != len(d.data) {
		return nil, d.fail()
	}
	return v, nil
}

func (d *decoder) fail() error { return fmt.Errorf("%w at offset %d", errJSON, d.pos) }

// space skips white space and returns the next byte, 0 at the end.
func (d *decoder) space() byte {
	for d.pos < len(d.data) {
		switch c := d.data[d.pos]; c {
		case ' ', '\n', '\r', '\t':
			d.pos++
		default:
			return c
		}
	}
	return 0
}

func (d *decoder) value() (goja.Value, error) {
	if d.nodes++; d.nodes%nodesPerCheck == 0 {
		d.check()
	}
	switch c := d.space(); c {
	case '{':
		return d.nested(d.object)
	case '[':
		return d.nested(d.array)
	case '"':
		return d.text()
	case 't':
		return d.word("true", d.vm.ToValue(true))
	case 'f':
		return d.word("false", d.vm.ToValue(false))
	case 'n':
		return d.word("null", goja.Null())
	default:
		return d.number()
	}
}

func (d *decoder) nested(read func() (goja.Value, error)) (goja.Value, error) {
	if d.depth++; d.depth > maxDecodeDepth {
		return nil, fmt.Errorf("%w: nested more than %d deep", errJSON, maxDecodeDepth)
	}
	d.pos++
	v, err := read()
	d.depth--
	return v, err
}

func (d *decoder) word(word string, v goja.Value) (goja.Value, error) {
	if len(d.data)-d.pos < len(word) || d.data[d.pos:d.pos+len(word)] != word {
		return nil, d.fail()
	}
	d.pos += len(word)
	return v, nil
}

func (d *decoder) array() (goja.Value, error) {
	var items []any
	if d.space() == ']' {
		d.pos++
		return d.vm.NewArray(), nil
	}
	for {
		item, err := d.value()
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		switch d.space() {
		case ',':
			d.pos++
		case ']':
			d.pos++
			return d.vm.NewArray(items...), nil
		default:
			return nil, d.fail()
		}
	}
}

func (d *decoder) object() (goja.Value, error) {
	o := d.vm.CreateObject(nil)
	if d.space() == '}' {
		d.pos++
		return o, o.SetPrototype(d.pristine.object)
	}
	for {
		if err := d.member(o); err != nil {
			return nil, err
		}
		switch d.space() {
		case ',':
			d.pos++
		case '}':
			d.pos++
			return o, o.SetPrototype(d.pristine.object)
		default:
			return nil, d.fail()
		}
	}
}

func (d *decoder) member(o *goja.Object) error {
	if d.space() != '"' {
		return d.fail()
	}
	key, units, err := d.quoted()
	if err != nil {
		return err
	}
	if units != nil {
		key = string(utf16.Decode(units))
	}
	if d.space() != ':' {
		return d.fail()
	}
	d.pos++
	value, err := d.value()
	if err != nil {
		return err
	}
	return o.Set(key, value)
}

func (d *decoder) text() (goja.Value, error) {
	s, units, err := d.quoted()
	if err != nil {
		return nil, err
	}
	if units != nil {
		return goja.StringFromUTF16(units), nil
	}
	return d.vm.ToValue(s), nil
}

// quoted reads a string; in UTF-16 when it holds half of a surrogate pair,
// which a Go string could not.
func (d *decoder) quoted() (string, []uint16, error) {
	d.pos++
	from := d.pos
	for d.pos < len(d.data) {
		switch c := d.data[d.pos]; {
		case c == '"':
			d.pos++
			return d.data[from : d.pos-1], nil, nil
		case c == '\\':
			return d.escaped(from)
		case c < 0x20:
			return "", nil, d.fail()
		}
		d.pos++
	}
	return "", nil, d.fail()
}

// escaped reads the rest of a string whose first escape is at d.pos.
func (d *decoder) escaped(from int) (string, []uint16, error) {
	buf := append(make([]byte, 0, 2*(d.pos-from)+32), d.data[from:d.pos]...)
	var units []uint16 // in use after the first half pair
	for d.pos < len(d.data) {
		switch c := d.data[d.pos]; {
		case c == '"':
			d.pos++
			if units != nil {
				return "", append(units, utf16.Encode([]rune(string(buf)))...), nil
			}
			return string(buf), nil, nil
		case c < 0x20:
			return "", nil, d.fail()
		case c != '\\':
			buf = append(buf, c)
			d.pos++
			continue
		}
		r, err := d.escape()
		if err != nil {
			return "", nil, err
		}
		if utf16.IsSurrogate(r) {
			units = append(append(units, utf16.Encode([]rune(string(buf)))...), uint16(r))
			buf = buf[:0]
			continue
		}
		buf = utf8.AppendRune(buf, r)
	}
	return "", nil, d.fail()
}

// escape reads one escape; a result in the surrogate range is half a pair.
func (d *decoder) escape() (rune, error) {
	if d.pos+1 >= len(d.data) {
		return 0, d.fail()
	}
	c := d.data[d.pos+1]
	d.pos += 2
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		return d.unicode()
	}
	return 0, d.fail()
}

func (d *decoder) unicode() (rune, error) {
	first, ok := d.hex(d.pos)
	if !ok {
		return 0, d.fail()
	}
	d.pos += 4
	if !utf16.IsSurrogate(first) || len(d.data)-d.pos < 6 || d.data[d.pos:d.pos+2] != `\u` {
		return first, nil
	}
	second, ok := d.hex(d.pos + 2)
	if pair := utf16.DecodeRune(first, second); ok && pair != utf8.RuneError {
		d.pos += 6
		return pair, nil
	}
	return first, nil
}

func (d *decoder) hex(at int) (rune, bool) {
	if len(d.data)-at < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(d.data[at:at+4], 16, 32)
	return rune(n), err == nil
}

func (d *decoder) number() (goja.Value, error) {
	from, integer := d.pos, true
scan:
	for ; d.pos < len(d.data); d.pos++ {
		switch c := d.data[d.pos]; c {
		case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '-', '+':
		case '.', 'e', 'E':
			integer = false
		default:
			break scan
		}
	}
	literal := d.data[from:d.pos]
	if !validNumber(literal) {
		d.pos = from
		return nil, d.fail()
	}
	if !integer {
		// Out of range is ±Inf, which is what JSON.parse gives too.
		f, _ := strconv.ParseFloat(literal, 64)
		return d.vm.ToValue(f), nil
	}
	n, err := strconv.ParseInt(literal, 10, 64)
	if err != nil || n > maxSafe || n < -maxSafe {
		return d.vm.ToValue(literal), nil
	}
	return d.vm.ToValue(n), nil
}

// validNumber reports whether s is a number by the grammar of JSON.
func validNumber(s string) bool {
	i := 0
	digits := func() bool {
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(s) && s[i] == '-' {
		i++
	}
	if i < len(s) && s[i] == '0' {
		i++
	} else if !digits() {
		return false
	}
	if i < len(s) && s[i] == '.' {
		if i++; !digits() {
			return false
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		if i++; i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if !digits() {
			return false
		}
	}
	return i == len(s)
}
