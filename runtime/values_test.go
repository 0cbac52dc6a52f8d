package runtime

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dop251/goja"
)

type values struct {
	vm *goja.Runtime
	p  pristine
}

func newValues() *values {
	vm := goja.New()
	return &values{vm: vm, p: newPristine(vm)}
}

func (v *values) decode(data []byte) (goja.Value, error) {
	d := decoder{vm: v.vm, pristine: &v.p, check: func() {}}
	return d.decode(data)
}

func (v *values) encode(x goja.Value, limit int) ([]byte, *valueError) {
	e := encoder{vm: v.vm, pristine: &v.p, check: func() {}, limit: limit}
	return e.encode("args", x)
}

func TestEncode(t *testing.T) {
	for _, c := range []struct{ claim, source, want string }{
		{"members keep their order", "({b: 1, a: {d: [], c: null}})", `{"b":1,"a":{"d":[],"c":null}}`},
		{"integers are exact", "[9007199254740991, -9007199254740991, 4294967296, -0]", `[9007199254740991,-9007199254740991,4294967296,0]`},
		{"fractions and powers survive", "[0.1, 1e21, 1.5e-7, 123456789.125]", `[0.1,1e+21,1.5e-07,123456789.125]`},
		{"control characters are escaped", `"\u0000\u001f\"\\\n\t\r\u2028é😀"`, `"\u0000\u001f\"\\\n\t\r` + "\u2028é😀" + `"`},
		{"U+FFFD is a character like others", `"\ufffd"`, `"` + "\uFFFD" + `"`},
		{"__proto__ is a key like others", `({["__proto__"]: 1, constructor: 2})`, `{"__proto__":1,"constructor":2}`},
		{"symbols as keys are left out", `({[Symbol("s")]: 1, a: 2})`, `{"a":2}`},
		{"objects without a prototype are plain", "Object.assign(Object.create(null), {a: 1})", `{"a":1}`},
		{"proxies are read through their traps", "new Proxy({a: 1}, {get: () => 5})", `{"a":5}`},
		{"a proxy of an array is an array", "new Proxy([1, 2], {})", `[1,2]`},
		{"years out of four digits have a sign", "[new Date(-62198755200000), new Date(253402300800000)]", `["-000001-01-01T00:00:00.000Z","+010000-01-01T00:00:00.000Z"]`},
		{"toJSON of a class is used", "new (class A { toJSON(key) { return {key} } })()", `{"key":""}`},
		{"the same object twice is no cycle", "(() => { const o = {}; return [o, o] })()", `[{},{}]`},
	} {
		t.Run(c.claim, func(t *testing.T) {
			v := newValues()
			x, err := v.vm.RunString(c.source)
			if err != nil {
				t.Fatal(err)
			}
			got, failure := v.encode(x, 1<<20)
			if failure != nil || string(got) != c.want {
				t.Errorf("%s gives %s, %v; want %s", c.source, got, failure, c.want)
			}
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	for _, c := range []struct{ claim, source, path, what string }{
		{"NaN", "({items: [1, {size: NaN}]})", "args.items[1].size", "NaN"},
		{"infinity", "[-Infinity]", "args[0]", "infinite"},
		{"BigInt", "({a: 1n})", "args.a", "BigInt"},
		{"a symbol", "[Symbol('x')]", "args[0]", "symbol"},
		{"a function", "({f() {}})", "args.f", "function"},
		{"an async function", "[async () => 1]", "args[0]", "function"},
		{"a class", "[class A {}]", "args[0]", "function"},
		{"a cycle", "(() => { const o = {a: []}; o.a.push(o); return o })()", "args.a[0]", "cycle"},
		{"a hole", "[1,,2]", "args[1]", "missing"},
		{"an undefined item", "[undefined]", "args[0]", "undefined"},
		{"a Map", "({m: new Map()})", "args.m", "Map"},
		{"a Set", "[new Set()]", "args[0]", "Set"},
		{"a Promise", "[Promise.resolve(1)]", "args[0]", "Promise"},
		{"an Error", "[new TypeError('x')]", "args[0]", "Error"},
		{"bytes", "[new Uint8Array(2)]", "args[0]", "Uint8Array"},
		{"a boxed number", "[new Number(1)]", "args[0]", "Number"},
		{"a class instance", "[new (class Foo { x = 1 })()]", "args[0]", "Foo"},
		{"a prototype of its own", "[Object.create({a: 1})]", "args[0]", ""},
		{"half a pair as text", "({a: 'x\\ud83dy'})", "args.a", "surrogate"},
		{"half a pair as key", "[{'\\ud83d': 1}]", "args[0]", "surrogate"},
		{"an invalid date", "[new Date(NaN)]", "args[0]", "invalid Date"},
		{"a getter that throws", "({a: {get b() { throw new Error('x') }}})", "args.a.b", "read"},
		{"a key that is no identifier", "({'a b': NaN})", `args["a b"]`, "NaN"},
		{"nesting over the bound", "(() => { let o = {}; for (let i = 0; i < 2000; i++) o = {o}; return o })()", "args.o.o", "nested"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			v := newValues()
			x, err := v.vm.RunString(c.source)
			if err != nil {
				t.Fatal(err)
			}
			got, failure := v.encode(x, 1<<20)
			if failure == nil || !strings.HasPrefix(failure.path, c.path) || !strings.Contains(failure.Error(), c.what) {
				t.Errorf("%s gives %s, %v; want a refusal of %s with %q", c.source, got, failure, c.path, c.what)
			}
		})
	}
}

func TestEncodeStopsAtTheLimit(t *testing.T) {
	v := newValues()
	x, err := v.vm.RunString("Array(100000).fill('0123456789')")
	if err != nil {
		t.Fatal(err)
	}
	if _, failure := v.encode(x, 1000); failure == nil || !failure.tooLarge {
		t.Errorf("failure is %v; want one that says the value is too large", failure)
	}
}

func TestDecode(t *testing.T) {
	for _, c := range []struct{ claim, json, source string }{
		{"large integers become strings", `[9007199254740993, -9007199254740993, 12345678901234567890]`, `JSON.stringify(x) === '["9007199254740993","-9007199254740993","12345678901234567890"]'`},
		{"safe integers stay numbers", `9007199254740991`, `x === 9007199254740991`},
		{"__proto__ is an own member", `{"__proto__": {"a": 1}}`, `Object.hasOwn(x, "__proto__") && x.a === undefined && Object.getPrototypeOf(x) === Object.prototype`},
		{"halves of pairs survive", `"a\ud800b\udc00"`, `x.length === 4 && x.charCodeAt(1) === 0xd800 && x.charCodeAt(3) === 0xdc00`},
		{"escaped pairs become one character", `"\ud83d\ude00"`, `x === "😀"`},
		{"the last of two equal members counts", `{"a": 1, "a": 2}`, `x.a === 2`},
		{"all escapes are known", `"\"\\\/\b\f\n\r\t\u0041"`, `x === '"\\/\b\f\n\r\tA'`},
		{"arrays are real", `[1, [2]]`, `Array.isArray(x) && x.length === 2 && x.map(y => y).length === 2`},
	} {
		t.Run(c.claim, func(t *testing.T) {
			v := newValues()
			x, err := v.decode([]byte(c.json))
			if err != nil {
				t.Fatal(err)
			}
			if err := v.vm.Set("x", x); err != nil {
				t.Fatal(err)
			}
			if ok, err := v.vm.RunString(c.source); err != nil || !ok.ToBoolean() {
				t.Errorf("%s does not hold for %s (%v)", c.source, c.json, err)
			}
		})
	}
}

func TestDecodeDoesNotRunSetters(t *testing.T) {
	v := newValues()
	if _, err := v.vm.RunString("Object.defineProperty(Object.prototype, 'a', {set() { throw 'ran' }})"); err != nil {
		t.Fatal(err)
	}
	x, err := v.decode([]byte(`{"a": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := x.(*goja.Object).Get("a"); got == nil || got.ToInteger() != 1 {
		t.Errorf("a is %v; want 1", got)
	}
}

// FuzzDecode states: what is JSON to encoding/json is JSON here, and nothing
// else is; and decoding what was encoded changes nothing any more.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,-0,true,null,"x\u00e9\ud800"]}`, `[`, `01`, `"\x"`, `[1,]`, `{"a":1,}`, ` 1 `, `1e`, `-`, "\"\xff\"", `"\ud83d\ude00"`, `[[[]]]`, `{"":{"":""}}`, `1e999`, "0\x000"} {
		f.Add([]byte(seed))
	}
	v := newValues()
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := v.decode(data)
		if (err == nil) != json.Valid(data) {
			t.Fatalf("decoding %q gives error %v; encoding/json says valid is %v", data, err, json.Valid(data))
		}
		if err != nil {
			return
		}
		once, failure := v.encode(x, 1<<20)
		if failure != nil {
			return // a half pair or an infinite number
		}
		again, err := v.decode(once)
		if err != nil {
			t.Fatalf("%q was encoded as %q, which does not decode: %v", data, once, err)
		}
		if twice, failure := v.encode(again, 1<<20); failure != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q was encoded as %q and then as %q (%v)", data, once, twice, failure)
		}
	})
}
