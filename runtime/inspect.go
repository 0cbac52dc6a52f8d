package runtime

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dop251/goja"
)

// The bounds of Node's util.inspect at its defaults.
const (
	inspectDepth    = 2
	maxInspectDepth = 100
	maxInspectItems = 100
	maxInspectText  = 10_000
	breakLength     = 80
)

// inspector writes values as Node's console does. Getters are not run.
type inspector struct {
	*world
	depth    int
	above    []*goja.Object
	circular *goja.Object
	deepest  int // level of the object that was entered last
	size     int // written so far
}

func (w *world) inspector() *inspector { return &inspector{world: w, depth: inspectDepth} }

// format joins arguments as console.log does: a format string first, if the
// first argument is one.
func (i *inspector) format(args []goja.Value) string {
	if len(args) == 0 {
		return ""
	}
	var parts []string
	if s, ok := args[0].(goja.String); ok {
		text, used := i.directives(s.String(), args[1:])
		parts, args = append(parts, text), args[1+used:]
	}
	for _, arg := range args {
		parts = append(parts, i.plain(arg))
	}
	return strings.Join(parts, " ")
}

// plain is text for a string, and the inspected form for anything else.
func (i *inspector) plain(v goja.Value) string {
	if s, ok := v.(goja.String); ok {
		return s.String()
	}
	return i.text(v)
}

// directives replaces %s and its like; used says how many arguments it took.
func (i *inspector) directives(format string, args []goja.Value) (text string, used int) {
	if len(args) == 0 || !strings.Contains(format, "%") {
		return format, 0
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(format, "%")
		b.WriteString(before)
		if !found {
			return b.String(), used
		}
		format = after
		switch {
		case after == "":
			b.WriteByte('%')
			return b.String(), used
		case after[0] == '%':
			b.WriteByte('%')
		case used == len(args) || !strings.ContainsRune("sdifjoOc", rune(after[0])):
			b.WriteByte('%')
			continue
		default:
			b.WriteString(i.directive(after[0], args[used]))
			used++
		}
		format = after[1:]
	}
}

func (i *inspector) directive(verb byte, v goja.Value) string {
	_, isObject := v.(*goja.Object)
	switch verb {
	case 's':
		if isObject && i.ownText(v.(*goja.Object)) {
			return v.String()
		}
		if isObject {
			inner := *i
			inner.depth = 0
			return inner.text(v)
		}
		return i.plain(v)
	case 'd', 'i', 'f':
		return i.numeric(verb, v, isObject)
	case 'j':
		json, err := i.encoder(maxInspectText*10).encode("value", v)
		if err != nil {
			return "[" + err.Error() + "]"
		}
		return string(json)
	case 'o':
		inner := *i
		inner.depth = 4
		return inner.text(v)
	case 'c':
		return ""
	}
	return i.text(v)
}

// ownText reports whether o is a function, or has a toString of the program's.
func (i *inspector) ownText(o *goja.Object) bool {
	if isFunctionClass(classOf(o)) {
		return true
	}
	for p := o; p != nil; p = p.Prototype() {
		if f, ok := i.own(p, "toString").(*goja.Object); ok {
			return !strings.Contains(f.String(), "[native code]")
		}
	}
	return false
}

func (i *inspector) numeric(verb byte, v goja.Value, isObject bool) string {
	if goja.IsBigInt(v) {
		return v.String() + "n"
	}
	if _, symbol := v.(*goja.Symbol); symbol || isObject {
		return "NaN"
	}
	f := v.ToFloat()
	if verb == 'i' {
		f = math.Trunc(f)
	}
	return i.vm.ToValue(f).String()
}

// text is the inspected form of v.
func (i *inspector) text(v goja.Value) string { return i.value(v, 0, 0) }

func (i *inspector) value(v goja.Value, level, indent int) string {
	switch v := v.(type) {
	case nil:
		return "undefined"
	case *goja.Object:
		return i.object(v, level, indent)
	case goja.String:
		return quoteJS(v.String())
	case *goja.Symbol:
		return "Symbol(" + v.String() + ")"
	}
	switch {
	case goja.IsBigInt(v):
		return v.String() + "n"
	case goja.IsNumber(v) && v.ToFloat() == 0 && math.Signbit(v.ToFloat()):
		return "-0"
	}
	return v.String()
}

// quoteJS quotes as Node does: single quotes unless another kind needs no
// escape.
func quoteJS(s string) string {
	more := ""
	if len(s) > maxInspectText {
		kept := strings.ToValidUTF8(s[:maxInspectText], "")
		more = "... " + strconv.Itoa(utf8.RuneCountInString(s)-utf8.RuneCountInString(kept)) + " more characters"
		s = kept
	}
	quote := byte('\'')
	if strings.Contains(s, "'") {
		switch {
		case !strings.Contains(s, `"`):
			quote = '"'
		case !strings.Contains(s, "`") && !strings.Contains(s, "${"):
			quote = '`'
		}
	}
	b := []byte{quote}
	for _, r := range s {
		switch {
		case r == rune(quote), r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r == '\t':
			b = append(b, '\\', 't')
		case r == '\b':
			b = append(b, '\\', 'b')
		case r == '\f':
			b = append(b, '\\', 'f')
		case r == '\v':
			b = append(b, '\\', 'v')
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			b = append(b, '\\', 'x', "0123456789ABCDEF"[r>>4], "0123456789ABCDEF"[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, quote)) + more
}

// object writes o, or what stands for it where it contains itself.
func (i *inspector) object(o *goja.Object, level, indent int) string {
	i.check()
	for hops := 0; classOf(o) == "Proxy" && hops < maxInspectDepth; hops++ {
		target := o.Export().(goja.Proxy).Target()
		if target == nil {
			return "<Revoked Proxy>"
		}
		o = target
	}
	if slices.Contains(i.above, o) {
		i.circular = o
		return "[Circular *1]"
	}
	i.above = append(i.above, o)
	text := i.shape(o, level, indent)
	i.above = i.above[:len(i.above)-1]
	if i.circular == o {
		i.circular = nil
		return "<ref *1> " + text
	}
	return text
}

// shape dispatches on what o is.
func (i *inspector) shape(o *goja.Object, level, indent int) string {
	class, name := classOf(o), i.constructorName(o)
	switch class {
	case "Error":
		return i.errorShape(o, level, indent)
	case "Date":
		return i.dateShape(o)
	case "RegExp":
		return o.String()
	case "Number", "Boolean":
		return "[" + class + ": " + i.value(i.vm.ToValue(o.Export()), level, indent) + "]"
	case "String":
		return "[String: " + quoteJS(o.String()) + "]"
	case "Array", "Bytes":
		return i.arrayShape(o, name, level, indent)
	case "Map":
		return i.mapShape(o, name, level, indent)
	case "Set":
		return i.setShape(o, name, level, indent)
	case "Promise":
		return i.promiseShape(o, level, indent)
	}
	if isFunctionClass(class) {
		return i.functionShape(o, name, level, indent)
	}
	return i.plainShape(o, class, name, level, indent)
}

func (i *inspector) dateShape(o *goja.Object) string {
	t, ok := o.Export().(time.Time)
	if !ok {
		return "Invalid Date"
	}
	return string(appendISO(nil, t))
}

func (i *inspector) plainShape(o *goja.Object, class, name string, level, indent int) string {
	prefix := name + " "
	tag := ""
	if s, ok := o.GetSymbol(goja.SymToStringTag).(goja.String); ok && s.String() != name {
		tag = "[" + shorten(s.String(), 100) + "] "
	}
	switch {
	case class == "Arguments":
		prefix = "[Arguments] "
	case name == "":
		prefix = "[Object: null prototype] "
	case name == "Object" && tag == "":
		prefix = ""
	}
	prefix += tag
	if name == "WeakMap" || name == "WeakSet" {
		return prefix + "{ <items unknown> }"
	}
	if !i.hasMembers(o) {
		return prefix + "{}"
	}
	if level > i.depth {
		return "[" + strings.TrimSpace(orElse(strings.TrimSpace(strings.TrimSuffix(prefix, tag)), "Object")+" "+tag) + "]"
	}
	i.deepest = level
	return i.wrap(prefix, "{", "}", i.members(o, false, level, indent), nil, level, indent)
}

func (i *inspector) hasMembers(o *goja.Object) bool { return len(o.Keys()) > 0 || len(o.Symbols()) > 0 }

func orElse(name, otherwise string) string {
	if name == "" {
		return otherwise
	}
	return name
}

// constructorName follows the prototypes to the first constructor's name.
func (i *inspector) constructorName(o *goja.Object) string {
	for p := o; p != nil; p = p.Prototype() {
		if ctor, ok := i.own(p, "constructor").(*goja.Object); ok {
			if name, ok := i.own(ctor, "name").(goja.String); ok && name.Length() > 0 {
				return shorten(name.String(), 100)
			}
		}
	}
	return ""
}

// own returns the value of an own data property, without running a getter.
func (i *inspector) own(o *goja.Object, key string) goja.Value {
	d := i.descriptor(o, i.vm.ToValue(key))
	if d == nil {
		return nil
	}
	return d.Get("value")
}

func (i *inspector) descriptor(o *goja.Object, key goja.Value) *goja.Object {
	d, _ := i.library().call("Object", "getOwnPropertyDescriptor", nil, o, key).(*goja.Object)
	return d
}

// members are the `key: value` entries of o; items leaves out array indexes.
func (i *inspector) members(o *goja.Object, items bool, level, indent int) (entries []string) {
	for n, key := range o.Keys() {
		if items && isIndex(key) {
			continue
		}
		if n > 10*maxInspectItems {
			return append(entries, "...")
		}
		if d := i.descriptor(o, i.vm.ToValue(key)); d != nil {
			entries = append(entries, quoteKey(key)+": "+i.property(d, level, indent))
		}
	}
	for _, key := range o.Symbols() {
		if d := i.descriptor(o, key); d != nil && d.Get("enumerable").ToBoolean() {
			entries = append(entries, "[Symbol("+key.String()+")]: "+i.property(d, level, indent))
		}
	}
	return entries
}

func (i *inspector) property(d *goja.Object, level, indent int) string {
	get, set := d.Get("get"), d.Get("set")
	isGetter, isSetter := get != nil && !goja.IsUndefined(get), set != nil && !goja.IsUndefined(set)
	switch {
	case isGetter && isSetter:
		return "[Getter/Setter]"
	case isGetter:
		return "[Getter]"
	case isSetter:
		return "[Setter]"
	}
	return i.value(d.Get("value"), level+1, indent+2)
}

func isIndex(key string) bool {
	_, err := strconv.ParseUint(key, 10, 32)
	return err == nil
}

// plainKey is what Node leaves without quotes.
var plainKey = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z_0-9]*$`)

func quoteKey(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return quoteJS(key)
}

func (i *inspector) arrayShape(o *goja.Object, name string, level, indent int) string {
	length := int(o.Get("length").ToInteger())
	prefix := ""
	if name != "Array" {
		prefix = orElse(name, "[Array: null prototype]") + "(" + strconv.Itoa(length) + ") "
	}
	if length == 0 && len(o.Keys()) == 0 {
		return prefix + "[]"
	}
	if level > i.depth {
		return "[" + orElse(name, "Array") + "]"
	}
	i.deepest = level
	entries := i.items(o, length, level, indent)
	if classOf(o) == "Array" && length <= 10*maxInspectItems {
		entries = append(entries, i.members(o, true, level, indent)...)
	}
	return i.wrap(prefix, "[", "]", entries, o, level, indent)
}

// items are the entries of an array: items, runs of holes, and what is left.
func (i *inspector) items(o *goja.Object, length, level, indent int) (entries []string) {
	for at := 0; at < length; {
		if len(entries) == maxInspectItems {
			return append(entries, more(length-at, "item"))
		}
		d := i.descriptor(o, i.vm.ToValue(at))
		if d != nil {
			entries = append(entries, i.property(d, level, indent))
			at++
			continue
		}
		from := at
		for at < length && d == nil {
			if at++; at-from > 10*maxInspectItems {
				at = length // no one looks further
				break
			}
			d = i.descriptor(o, i.vm.ToValue(at))
		}
		entries = append(entries, "<"+strconv.Itoa(at-from)+" empty item"+plural(at-from)+">")
	}
	return entries
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func more(n int, what string) string {
	return "... " + strconv.Itoa(n) + " more " + what + plural(n)
}

func (i *inspector) mapShape(o *goja.Object, name string, level, indent int) string {
	return i.collection(o, orElse(name, "Map"), level, indent, func(value, key goja.Value) string {
		return i.value(key, level+1, indent+2) + " => " + i.value(value, level+1, indent+2)
	})
}

func (i *inspector) setShape(o *goja.Object, name string, level, indent int) string {
	return i.collection(o, orElse(name, "Set"), level, indent, func(value, _ goja.Value) string {
		return i.value(value, level+1, indent+2)
	})
}

func (i *inspector) collection(o *goja.Object, name string, level, indent int, entry func(value, key goja.Value) string) string {
	var pairs [][2]goja.Value
	total := 0
	i.forEach(o, func(value, key goja.Value) {
		if total++; total <= maxInspectItems {
			pairs = append(pairs, [2]goja.Value{value, key})
		}
	})
	prefix := name + "(" + strconv.Itoa(total) + ") "
	if total == 0 && !i.hasMembers(o) {
		return prefix + "{}"
	}
	if level > i.depth {
		return "[" + name + "]"
	}
	i.deepest = level
	var entries []string
	for _, pair := range pairs {
		entries = append(entries, entry(pair[0], pair[1]))
	}
	if total > maxInspectItems {
		entries = append(entries, more(total-maxInspectItems, "item"))
	}
	entries = append(entries, i.members(o, false, level, indent)...)
	return i.wrap(prefix, "{", "}", entries, nil, level, indent)
}

// forEach walks a Map or Set.
func (i *inspector) forEach(o *goja.Object, visit func(value, key goja.Value)) {
	i.library().call(classOf(o), "forEach", o, i.vm.ToValue(func(call goja.FunctionCall) goja.Value {
		visit(call.Argument(0), call.Argument(1))
		return nil
	}))
}

func (i *inspector) promiseShape(o *goja.Object, level, indent int) string {
	p, ok := o.Export().(*goja.Promise)
	if !ok || level > i.depth {
		return "[Promise]"
	}
	i.deepest = level
	state := "<pending>"
	switch p.State() {
	case goja.PromiseStateFulfilled:
		state = i.value(p.Result(), level+1, indent+2)
	case goja.PromiseStateRejected:
		state = "<rejected> " + i.value(p.Result(), level+1, indent+2)
	}
	return i.wrap("Promise ", "{", "}", []string{state}, nil, level, indent)
}

// functionShape tells functions from classes; class is its constructor's name.
func (i *inspector) functionShape(o *goja.Object, class string, level, indent int) string {
	if !strings.HasSuffix(class, "Function") {
		class = "Function"
	}
	name := ""
	if s, ok := i.own(o, "name").(goja.String); ok && s.Length() > 0 {
		name = shorten(s.String(), 100)
	}
	text := "[" + class + ": " + name
	if name == "" {
		text = "[" + class + " (anonymous)"
	}
	if source := o.String(); strings.HasPrefix(source, "class") && !isWord((source + " ")[5]) {
		text = "[class " + orElse(name, "(anonymous)")
		if s, ok := i.parentName(o); ok {
			text += " extends " + s
		}
	}
	text += "]"
	if level > i.depth || !i.hasMembers(o) {
		return text
	}
	i.deepest = level
	return i.wrap(text+" ", "{", "}", i.members(o, false, level, indent), nil, level, indent)
}

func (i *inspector) parentName(o *goja.Object) (string, bool) {
	parent := o.Prototype()
	if parent == nil {
		return "", false
	}
	s, ok := i.own(parent, "name").(goja.String)
	if !ok || s.Length() == 0 {
		return "", false
	}
	return shorten(s.String(), 100), true
}

// errorShape is `Name: message` with the own fields behind it.
func (i *inspector) errorShape(o *goja.Object, level, indent int) string {
	text := i.errorText(o)
	if level > 0 {
		text = "[" + text + "]"
	}
	if level > i.depth {
		return text
	}
	entries := i.errorFields(o, level, indent)
	if len(entries) == 0 {
		return text
	}
	i.deepest = level
	return i.wrap(text+" ", "{", "}", entries, nil, level, indent)
}

func (i *inspector) errorFields(o *goja.Object, level, indent int) (entries []string) {
	for _, key := range o.Keys() {
		if key == "message" || key == "name" || key == "stack" {
			continue
		}
		if d := i.descriptor(o, i.vm.ToValue(key)); d != nil {
			entries = append(entries, quoteKey(key)+": "+i.property(d, level, indent))
		}
	}
	for _, hidden := range []string{"cause", "errors"} {
		if d := i.descriptor(o, i.vm.ToValue(hidden)); d != nil && !d.Get("enumerable").ToBoolean() {
			entries = append(entries, "["+hidden+"]: "+i.property(d, level, indent))
		}
	}
	return entries
}
