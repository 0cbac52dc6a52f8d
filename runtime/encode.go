package runtime

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dop251/goja"
)

const (
	// maxDepth bounds how deeply a value that leaves the program is nested.
	maxDepth = 1000
	// nodesPerCheck is how many nodes are walked between two looks at the
	// sticky stop reason.
	nodesPerCheck = 1024
)

// A valueError says which part of a value is no lossless JSON.
type valueError struct {
	path, what, hint string
	tooLarge         bool
}

func (e *valueError) Error() string {
	text := e.path + " " + e.what
	if e.hint != "" {
		text += ": " + e.hint
	}
	return text
}

// encoder turns one value of the program into JSON. It runs on the VM
// goroutine, inside the deadline: getters, proxies and toJSON are the
// program's code.
type encoder struct {
	vm       *goja.Runtime
	pristine *pristine
	check    func() // unwinds when the run must end
	limit    int
	buf      []byte
	nodes    int
	path     []step
	above    []*goja.Object
}

// step is one member or item on the way to the current node.
type step struct {
	key   string
	index int // used when key is not
	item  bool
}

// encode returns the JSON of v; nil without an error means undefined.
func (e *encoder) encode(root string, v goja.Value) (json []byte, err *valueError) {
	if v == nil || goja.IsUndefined(v) {
		return nil, nil
	}
	thrown := e.vm.Try(func() { err = e.node(v, "") })
	if thrown != nil {
		err = &valueError{what: "cannot be read", hint: "its getter, proxy or toJSON threw " + e.describe(thrown)}
	}
	if err != nil {
		err.path = e.where(root)
		return nil, err
	}
	return e.buf, nil
}

// describe names what the program threw, without running its code.
func (e *encoder) describe(thrown *goja.Exception) string {
	if _, ok := thrown.Value().(*goja.Object); ok {
		return "an error"
	}
	return shorten(thrown.Value().String(), 200)
}

func (e *encoder) where(root string) string {
	var b strings.Builder
	b.WriteString(root)
	steps := e.path
	for i, s := range steps {
		if len(steps) > 20 && i == 10 {
			b.WriteString("…")
		}
		if len(steps) > 20 && i >= 10 && i < len(steps)-10 {
			continue
		}
		s.write(&b)
	}
	return b.String()
}

func (s step) write(b *strings.Builder) {
	switch {
	case s.item:
		b.WriteString("[" + strconv.Itoa(s.index) + "]")
	case identifier().MatchString(s.key):
		b.WriteString("." + s.key)
	default:
		b.WriteString("[" + strconv.Quote(shorten(s.key, 100)) + "]")
	}
}

// node appends v. key is the member name that toJSON gets to see.
func (e *encoder) node(v goja.Value, key string) *valueError {
	if e.nodes++; e.nodes%nodesPerCheck == 0 {
		e.check()
	}
	if len(e.buf) > e.limit {
		return &valueError{what: "is too large", hint: "its JSON is longer than " + strconv.Itoa(e.limit) + " bytes", tooLarge: true}
	}
	switch v := v.(type) {
	case *goja.Object:
		return e.object(v, key)
	case goja.String:
		return e.text(v)
	case *goja.Symbol:
		return &valueError{what: "is a symbol", hint: "use a string"}
	}
	return e.primitive(v)
}

func (e *encoder) primitive(v goja.Value) *valueError {
	switch {
	case goja.IsNumber(v):
		return e.number(v.ToFloat())
	case goja.IsNull(v):
		e.buf = append(e.buf, "null"...)
	case goja.IsUndefined(v):
		return &valueError{what: "is undefined", hint: "use null"}
	case goja.IsBigInt(v):
		return &valueError{what: "is a BigInt", hint: "use String(x) or Number(x)"}
	case v.ToBoolean():
		e.buf = append(e.buf, "true"...)
	default:
		e.buf = append(e.buf, "false"...)
	}
	return nil
}

func (e *encoder) number(f float64) *valueError {
	switch {
	case f == math.Trunc(f) && math.Abs(f) < 1<<53:
		e.buf = strconv.AppendInt(e.buf, int64(f), 10)
	case math.IsNaN(f):
		return &valueError{what: "is NaN", hint: "JSON has no NaN: use null or a string"}
	case math.IsInf(f, 0):
		return &valueError{what: "is infinite", hint: "JSON has no Infinity: use null or a string"}
	case math.Abs(f) >= 1e21 || math.Abs(f) < 1e-6:
		e.buf = strconv.AppendFloat(e.buf, f, 'e', -1, 64)
	default:
		e.buf = strconv.AppendFloat(e.buf, f, 'f', -1, 64)
	}
	return nil
}

func (e *encoder) text(s goja.String) *valueError {
	text := s.String()
	if len(text) > e.limit {
		return &valueError{what: "is too large", hint: "it is longer than " + strconv.Itoa(e.limit) + " bytes", tooLarge: true}
	}
	if strings.Contains(text, "\uFFFD") && hasLoneSurrogate(s) {
		return &valueError{what: "holds half of a surrogate pair", hint: "it was cut inside a character: use toWellFormed() or cut with Array.from(text)"}
	}
	e.buf = appendQuoted(e.buf, text)
	return nil
}

func hasLoneSurrogate(s goja.String) bool {
	for i, n := 0, s.Length(); i < n; i++ {
		switch c := s.CharAt(i); {
		case c < 0xD800 || c > 0xDFFF:
		case c <= 0xDBFF && i+1 < n && s.CharAt(i+1)&0xFC00 == 0xDC00:
			i++
		default:
			return true
		}
	}
	return false
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends s as a JSON string.
func appendQuoted(buf []byte, s string) []byte {
	buf = append(buf, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		buf = append(buf, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			buf = append(buf, '\\', c)
		case '\n':
			buf = append(buf, '\\', 'n')
		case '\r':
			buf = append(buf, '\\', 'r')
		case '\t':
			buf = append(buf, '\\', 't')
		default:
			buf = append(buf, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	buf = append(buf, s[from:]...)
	return append(buf, '"')
}

func (e *encoder) object(o *goja.Object, key string) *valueError {
	if len(e.above) >= maxDepth {
		return &valueError{what: "is nested too deeply", hint: "at most " + strconv.Itoa(maxDepth) + " levels can leave the program"}
	}
	for _, above := range e.above {
		if above == o {
			return &valueError{what: "is a cycle", hint: "it contains itself"}
		}
	}
	e.above = append(e.above, o)
	err := e.container(o, key)
	e.above = e.above[:len(e.above)-1]
	return err
}

func (e *encoder) container(o *goja.Object, key string) *valueError {
	switch classOf(o) {
	case "Array":
		return e.items(o)
	case "Object", "Arguments":
		if proto := o.Prototype(); proto == e.pristine.object || proto == nil {
			return e.members(o, key)
		}
	case "Proxy":
		if isArrayProxy(o) {
			return e.items(o)
		}
		if proto := o.Prototype(); proto == e.pristine.object || proto == nil {
			return e.members(o, key)
		}
	case "Function", "AsyncFunction", "GeneratorFunction", "AsyncGeneratorFunction":
		return &valueError{what: "is a function", hint: "functions cannot leave the program"}
	case "Date":
		return e.date(o)
	}
	return e.instance(o, key)
}

// isArrayProxy reports whether o is a proxy of an array.
func isArrayProxy(o *goja.Object) bool {
	for depth := 0; o != nil && o.ExportType() == typeProxy && depth < 100; depth++ {
		proxy, _ := o.Export().(goja.Proxy)
		o = proxy.Target()
		if o != nil && o.ClassName() == "Array" {
			return true
		}
	}
	return false
}

// indexes are the decimal numbers of the first items, to save their making.
var indexes = func() (names [1024]string) {
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}()

func (e *encoder) items(o *goja.Object) *valueError {
	length := int(min(o.Get("length").ToInteger(), math.MaxInt32*4))
	e.buf = append(e.buf, '[')
	at := len(e.path)
	e.path = append(e.path, step{item: true})
	for i := range length {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.path[at].index = i
		name := ""
		if i < len(indexes) {
			name = indexes[i]
		} else {
			name = strconv.Itoa(i)
		}
		item := o.Get(name)
		if item == nil {
			return &valueError{what: "is missing", hint: "the array is sparse: fill it or use null"}
		}
		if err := e.node(item, name); err != nil {
			return err
		}
	}
	e.path = e.path[:at]
	e.buf = append(e.buf, ']')
	return nil
}

func (e *encoder) members(o *goja.Object, key string) *valueError {
	start := len(e.buf)
	e.buf = append(e.buf, '{')
	at := len(e.path)
	e.path = append(e.path, step{})
	first := true
	for _, name := range o.Keys() {
		if strings.Contains(name, "\uFFFD") && e.loneKey(o) {
			e.path = e.path[:at]
			return &valueError{what: "has a key that holds half of a surrogate pair", hint: "it was cut inside a character"}
		}
		e.path[at].key = name
		value := o.Get(name)
		if value == nil || goja.IsUndefined(value) {
			continue
		}
		if name == "toJSON" {
			if toJSON, ok := goja.AssertFunction(value); ok {
				e.buf, e.path = e.buf[:start], e.path[:at]
				return e.converted(toJSON, o, key)
			}
		}
		if !first {
			e.buf = append(e.buf, ',')
		}
		first = false
		e.buf = append(appendQuoted(e.buf, name), ':')
		if err := e.node(value, name); err != nil {
			return err
		}
	}
	e.path = e.path[:at]
	e.buf = append(e.buf, '}')
	return nil
}

// loneKey looks at the keys of o again, in a form that still shows what Go
// strings cannot hold.
func (e *encoder) loneKey(o *goja.Object) bool {
	keys := library{e.vm}.call("Object", "keys", nil, o).(*goja.Object)
	for i := range int(keys.Get("length").ToInteger()) {
		if key, ok := keys.Get(strconv.Itoa(i)).(goja.String); ok && hasLoneSurrogate(key) {
			return true
		}
	}
	return false
}

// converted appends what the program's own toJSON makes of o.
func (e *encoder) converted(toJSON goja.Callable, o *goja.Object, key string) *valueError {
	value, err := toJSON(o, e.vm.ToValue(key))
	if err != nil {
		panic(err)
	}
	if value == o {
		return &valueError{what: "is a cycle", hint: "its toJSON returns itself"}
	}
	if len(e.above) >= maxDepth {
		return &valueError{what: "is nested too deeply", hint: "its toJSON returns objects with toJSON without end"}
	}
	return e.node(value, key)
}

func (e *encoder) date(o *goja.Object) *valueError {
	t, ok := o.Export().(time.Time)
	if !ok {
		return &valueError{what: "is an invalid Date", hint: "check it with isNaN(date)"}
	}
	e.buf = append(e.buf, '"')
	e.buf = appendISO(e.buf, t)
	e.buf = append(e.buf, '"')
	return nil
}

// appendISO appends t as Date.prototype.toISOString writes it.
func appendISO(buf []byte, t time.Time) []byte {
	t = t.UTC()
	if year := t.Year(); year < 0 || year > 9999 {
		sign := byte('+')
		if year < 0 {
			sign, year = '-', -year
		}
		digits := strconv.Itoa(1_000_000 + year)
		buf = append(append(buf, sign), digits[1:]...)
		return t.AppendFormat(buf, "-01-02T15:04:05.000Z")
	}
	return t.AppendFormat(buf, "2006-01-02T15:04:05.000Z")
}

// instance handles everything that is no plain object: it needs a toJSON.
func (e *encoder) instance(o *goja.Object, key string) *valueError {
	if toJSON, ok := goja.AssertFunction(o.Get("toJSON")); ok {
		return e.converted(toJSON, o, key)
	}
	name := e.className(o)
	if name == "" {
		return &valueError{what: "has a prototype of its own", hint: "copy it into a plain object: {...x}"}
	}
	what := "is a " + name
	if strings.ContainsRune("AEIOU", rune(name[0])) {
		what = "is an " + name
	}
	return &valueError{what: what, hint: conversionHint(name)}
}

func (e *encoder) className(o *goja.Object) string {
	if class := classOf(o); class != "Object" && class != "Proxy" && class != "Bytes" {
		return class
	}
	ctor, ok := o.Get("constructor").(*goja.Object)
	if !ok {
		return ""
	}
	name, ok := ctor.Get("name").(goja.String)
	if !ok {
		return ""
	}
	return shorten(name.String(), 100)
}

func conversionHint(class string) string {
	switch {
	case class == "Promise":
		return "await it"
	case class == "Map":
		return "use Object.fromEntries(map) or [...map]"
	case class == "Set" || strings.HasSuffix(class, "Iterator"):
		return "use [...x]"
	case strings.HasSuffix(class, "Error"):
		return "use its message, or {name: e.name, message: e.message}"
	case strings.HasSuffix(class, "Array") || class == "ArrayBuffer" || class == "DataView":
		return "use Array.from(new Uint8Array(x)) or text"
	case class == "RegExp":
		return "use x.source"
	}
	return "copy it into a plain object, {...x}, or give it a toJSON method"
}

// shorten cuts s to about n bytes, between characters.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
