package runtimetest

import "github.com/dsh-run/dsh/runtime"

// behaviour is what programs may rely on.
var behaviour = []row{
	// shapes
	{claim: "the body of an async function returns a value", source: "const r = await tools.echo({a: 1}); return r.a", value: "1"},
	{claim: "a fence is no part of the program", source: "```ts\nconst x: number = 2\nreturn x\n```\n", value: "2"},
	{claim: "a default export is called", source: "const y = 3\nexport default async () => { return y }", value: "3"},
	{claim: "a named default export is called", source: "export default async function main() { return 'm' }", value: `"m"`},
	{claim: "a bare arrow function is called", source: "async () => { return args[0] }", args: "[7]", value: "7"},
	{claim: "a bare function expression is called", source: "(async function () { return 8 })", value: "8"},
	{claim: "the last expression is the value", source: "const a = 4\na * 2", value: "8"},
	{claim: "the last expression is no value beside a return", source: "if (args.length) return 1\n'x'", value: ""},
	{claim: "undefined is absent", source: "return undefined", value: ""},
	{claim: "null is a value", source: "return null", value: "null"},
	// TypeScript
	{claim: "types are removed", source: "interface A { n: number }\nconst a: A = { n: 1 }\nreturn (a as A).n satisfies number", value: "1"},
	{claim: "enums and parameter properties work", source: "enum E { A = 5, B }\nclass P { constructor(private readonly v: number) {} get w() { return this.v } }\nreturn [E.B, E[5], new P(3).w]", value: `[6,"A",3]`},
	{claim: "a call with type arguments is a call", source: "const id = <T,>(x: T): T => x\nreturn id<string>('s')", value: `"s"`},
	{claim: "type arguments alone are TypeScript", source: "function id(x) { return x }\nreturn id<string>('s')", value: `"s"`},
	// newer JavaScript
	{claim: "async generators and for await work", source: "async function* g() { yield 1; yield 2 }\nlet s = 0\nfor await (const x of g()) s += x\nreturn s", value: "3"},
	{claim: "class fields and private methods work", source: "class C { #a = 1; static s = 2; b = 3; #m() { return this.#a } sum() { return this.#m() + C.s + this.b } }\nreturn new C().sum()", value: "6"},
	{claim: "optional chaining and logical assignment work", source: "let o = null; o ??= { a: { b: 1 } }\nreturn [o?.a?.b, o.x?.y ?? 'd', 2 ** 3]", value: `[1,"d",8]`},
	// errors
	{claim: "a syntax error has the author's line", source: "const a = 1\n\nlet x: = 5", kind: runtime.Syntax, line: 3},
	{claim: "a syntax error inside a fence has the line of the whole text", source: "```ts\nlet x: = 5\n```", kind: runtime.Syntax, line: 2},
	{claim: "an exception has the author's line", source: "const a = 1\nfunction f() {\n  throw new TypeError('bad')\n}\nf()", kind: runtime.Exception, message: "TypeError: bad", line: 3},
	{claim: "an exception in TypeScript has the author's line", source: "interface A {\n  n: number\n}\nenum E { X }\nconst a: A = { n: 1 }\nthrow new Error('late')", kind: runtime.Exception, message: "Error: late", line: 6},
	{claim: "a thrown object is shown", source: "throw { code: 7, message: 'm' }", kind: runtime.Exception, message: "{ code: 7, message: 'm' }"},
	{claim: "a thrown undefined is shown", source: "throw undefined", kind: runtime.Exception, message: "undefined"},
	{claim: "a cause is shown", source: "throw new Error('outer', { cause: new Error('inner') })", kind: runtime.Exception, message: "inner"},
	{claim: "a missing global's error says what exists", source: "fetch('x')", kind: runtime.Exception, message: "console"},
	{claim: "an import is refused with the reason", source: "import fs from 'fs'\nreturn 1", kind: runtime.Syntax, message: "imported", line: 1},
	{claim: "an error of a timer ends the run", source: "setTimeout(() => { throw new Error('t') }, 1); await new Promise(() => {})", kind: runtime.Exception, message: "Error: t"},
	// calls
	{claim: "a call carries line and column", source: "\n  const w = await tools.where()\nreturn w", value: "[2,25]"},
	{claim: "a call in TypeScript carries line and column", source: "type T = string\nconst t: T = 'x'\nreturn await tools.where()", value: "[3,20]"},
	{claim: "calls overlap and keep their order", source: "return await Promise.all([1, 2, 3].map(i => tools.echo({ i })))", value: `[{"i":1},{"i":2},{"i":3}]`, calls: "echo echo echo"},
	{claim: "no argument is an empty object", source: "return await tools.echo()", value: "{}"},
	{claim: "undefined members are dropped, null stays", source: "return await tools.echo({ a: undefined, b: null })", value: `{"b":null}`},
	{claim: "a rejected call throws the host's class with its fields", source: "try { await tools.fail() } catch (e) { return [e instanceof ToolCallError, e instanceof Error, e.name, e.message, e.code, JSON.parse(JSON.stringify(e)).toolName] }", value: `[true,true,"ToolCallError","it failed","E7","fail"]`},
	{claim: "an uncaught rejection names class and line of the call", source: "\nawait tools.fail()", kind: runtime.Exception, message: "ToolCallError: it failed", line: 2},
	{claim: "a namespace is an object", source: "return await tools.github.create_issue({ t: 1 })", value: `{"t":1}`, calls: "github.create_issue"},
	{claim: "odd names are ordinary", source: "return [await tools.constructor({ a: 1 }), await tools['__proto__']({ b: 1 }), await tools['x-y']({ c: 1 })]", value: `[{"a":1},{"b":1},{"c":1}]`},
	{claim: "an unknown name reaches the host", source: "try { await tools.ech() } catch (e) { return e.message }", value: `"no function ech"`},
	{claim: "the host's object tells what it has", source: "return ['echo' in tools, 'nope' in tools, Object.keys(tools).length, Object.getPrototypeOf(tools)]", value: "[true,false,11,null]"},
	{claim: "awaiting the host's object does not hang", source: "const t = await tools; return typeof t.echo", value: `"function"`},
	{claim: "arguments that are no JSON reject that call alone", source: "try { await tools.echo({ items: [1, { size: NaN }] }) } catch (e) { return [e.code, e.message.includes('args.items[1].size'), await tools.echo({ ok: 1 })] }", value: `["INVALID_ARGS",true,{"ok":1}]`, calls: "echo"},
	{claim: "arguments over the limit reject that call alone", source: "try { await tools.echo({ a: 'x'.repeat(5000) }) } catch (e) { return e.code }", limits: runtime.Limits{CallBytes: 1000}, value: `"VALUE_TOO_LARGE"`},
	// values
	{claim: "large integers arrive as strings, __proto__ as data", source: "const b = await tools.big(); return [b.id, b.n, Object.keys(b), b.half.length, b.half.charCodeAt(0), b.safe, b.a === undefined]", value: `["9007199254740993",1e+21,["id","n","__proto__","half","z","safe"],1,55296,9007199254740991,true]`},
	{claim: "dates, -0 and toJSON have JSON", source: "return [new Date(0), -0, { toJSON() { return 'j' } }]", value: `["1970-01-01T00:00:00.000Z",0,"j"]`},
	{claim: "a Map is refused", source: "return { m: new Map() }", kind: runtime.InvalidOutput, message: "value.m"},
	{claim: "a class instance is refused", source: "class A { x = 1 }\nreturn [new A()]", kind: runtime.InvalidOutput, message: "value[0]"},
	{claim: "a BigInt is refused", source: "return { a: 1n }", kind: runtime.InvalidOutput, message: "value.a"},
	{claim: "a function is refused", source: "return { f() {} }", kind: runtime.InvalidOutput, message: "value.f"},
	{claim: "a sparse array is refused", source: "return [1, , 2]", kind: runtime.InvalidOutput, message: "value[1]"},
	{claim: "a cycle is refused", source: "const o = {}; o.o = o; return o", kind: runtime.InvalidOutput, message: "cycle"},
	{claim: "half a surrogate pair is refused", source: "return { a: '\\ud83d' }", kind: runtime.InvalidOutput, message: "value.a"},
	{claim: "a getter that throws is refused", source: "return { get a() { throw new Error('x') } }", kind: runtime.InvalidOutput, message: "value.a"},
	{claim: "a promise left in the value is refused with the advice to await", source: "return { p: tools.echo() }", kind: runtime.InvalidOutput, message: "await"},
	// globals
	{claim: "console prints as Node does", source: "console.log('a', { b: [1, 'c'] }, new Map([['k', 1]]))\nconsole.warn('%s is %d', 'x', 5)", logs: "a { b: [ 1, 'c' ] } Map(1) { 'k' => 1 }\nx is 5"},
	{claim: "timers fire in order", source: "const o = []; setTimeout(() => o.push(2), 5); setTimeout(() => o.push(1), 1); setImmediate(() => o.push(0)); await new Promise(r => setTimeout(r, 20)); return o", value: "[0,1,2]"},
	{claim: "an interval can be cleared", source: "let n = 0; await new Promise(r => { const i = setInterval(() => { if (++n === 3) { clearInterval(i); r() } }, 1) }); return n", value: "3"},
	{claim: "text is encoded and decoded", source: "return [new TextDecoder().decode(new TextEncoder().encode('ü€')), btoa('hi'), atob('aGk=')]", value: `["ü€","aGk=","hi"]`},
	{claim: "structuredClone keeps cycles and maps", source: "const a = { m: new Map([[1, 2]]), d: new Date(5) }; a.a = a; const b = structuredClone(a); return [b.a === b, b.m.get(1), b.d.getTime(), b !== a]", value: "[true,2,5,true]"},
	{claim: "chance and time come from the host", source: "return [Math.random() === Math.random(), crypto.randomUUID().length, new Date().getFullYear()]", value: "[false,36,2023]"},
	{claim: "there is no way out", source: "return [typeof require, typeof process, typeof fetch, typeof module]", value: `["undefined","undefined","undefined","undefined"]`},
}
