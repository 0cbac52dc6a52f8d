package runtimetest

import (
	"strings"
	"time"

	"github.com/dsh-run/dsh/runtime"
)

// short is the limit of programs that must be stopped.
var short = runtime.Limits{Compute: 300 * time.Millisecond}

// hostile is what no program may do, and how each attempt ends.
var hostile = []row{
	{claim: "a loop is stopped", source: "while (true) {}", limits: short, kind: runtime.Timeout, clock: runtime.ComputeClock},
	{claim: "a loop of microtasks is stopped", source: "for (;;) await null", limits: short, kind: runtime.Timeout, clock: runtime.ComputeClock},
	{claim: "a chain of promises is stopped", source: "const f = () => Promise.resolve().then(f); await f()", limits: short, kind: runtime.Timeout, clock: runtime.ComputeClock},
	{claim: "a stop cannot be caught", source: "for (;;) { try { while (true) {} } catch { } finally { while (true) {} } }", limits: short, kind: runtime.Timeout, clock: runtime.ComputeClock},
	{claim: "a stop cannot be outlived by what is queued", source: "const f = () => { try { for (;;) {} } finally { queueMicrotask(f); setTimeout(f, 0); tools.echo() } }; setTimeout(f, 0); await new Promise(() => {})", limits: short, kind: runtime.Timeout, clock: runtime.ComputeClock},
	{claim: "a backtracking regular expression is stopped", source: "/(?=a)(a+)+$/.test('a'.repeat(40) + '!')", limits: short, kind: runtime.Timeout, clock: runtime.ComputeClock, contained: true},
	{claim: "a native loop is stopped", source: "Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)", limits: short, kind: runtime.Timeout, clock: runtime.ComputeClock, contained: true},
	{claim: "a giant repeat throws", source: "'x'.repeat(2 ** 40)", kind: runtime.Exception, message: "RangeError"},
	{claim: "a giant pad throws", source: "'x'.padStart(2 ** 40, 'ab')", kind: runtime.Exception, message: "RangeError"},
	{claim: "a giant array throws", source: "Array(2 ** 32)", kind: runtime.Exception, message: "RangeError"},
	{claim: "a giant join throws", source: "new Array(2 ** 31).join('abcdef')", kind: runtime.Exception, message: "RangeError"},
	{claim: "endless recursion throws", source: "function f() { return f() + 1 }\nf()", kind: runtime.Exception, message: "RangeError"},
	{claim: "an allocation bomb is stopped", source: "const a = []; for (;;) a.push('x'.repeat(1 << 20) + a.length)", limits: runtime.Limits{Compute: 30 * time.Second, Memory: 128 << 20}, kind: runtime.MemoryLimit, contained: true},
	{claim: "a giant buffer is stopped", source: "new ArrayBuffer(2 ** 40)", limits: runtime.Limits{Memory: 128 << 20}, kind: runtime.MemoryLimit, contained: true},
	{claim: "200,000 brackets are a syntax error", source: strings.Repeat("[", 200_000), kind: runtime.Syntax, message: "deep"},
	{claim: "brackets behind what looks like a template are a syntax error", source: "const q = `${" + strings.Repeat("(", 100_000) + "`", kind: runtime.Syntax, message: "deep"},
	{claim: "a source over the limit is refused", source: "/*" + strings.Repeat("x", 300<<10) + "*/", kind: runtime.SourceLimit},
	{claim: "the wrapper cannot be closed", source: "}); globalThis.evil = 1; (async () => {", kind: runtime.Syntax},
	{claim: "the wrapper cannot be closed in TypeScript", source: "let x: number = 1 }); globalThis.evil = 1; (async () => { let y: number = 1", kind: runtime.Syntax},
	{claim: "the wrapper cannot be closed behind a declaration", source: "}); var evil = tools.echo(); (async () => {", kind: runtime.Syntax},
	{claim: "a getter in the value runs inside the deadline", source: "return { get a() { for (;;) {} } }", limits: short, kind: runtime.Timeout, clock: runtime.ComputeClock},
	{claim: "a proxy as value runs inside the deadline", source: "return new Proxy({}, { ownKeys() { for (;;) {} } })", limits: short, kind: runtime.Timeout, clock: runtime.ComputeClock},
	{claim: "a toJSON runs inside the deadline", source: "return { toJSON() { for (;;) {} } }", limits: short, kind: runtime.Timeout, clock: runtime.ComputeClock},
	{claim: "toJSON without end is refused", source: "const f = () => ({ toJSON: f }); return f()", kind: runtime.InvalidOutput},
	{claim: "an argument's getter runs inside the deadline", source: "await tools.echo({ get path() { for (;;) {} } })", limits: short, kind: runtime.Timeout, clock: runtime.ComputeClock},
	{claim: "a thrown object's getters run inside the deadline", source: "const e = new Error(); Object.defineProperty(e, 'message', { get() { for (;;) {} } }); throw e", limits: short, kind: runtime.Timeout, clock: runtime.ComputeClock},
	{claim: "a thrown object's toString is not called", source: "throw { get message() { for (;;) {} }, toString() { for (;;) {} } }", limits: short, kind: runtime.Exception},
	{claim: "a promise that nobody settles is a deadlock at once", source: "await new Promise(() => {})", limits: runtime.Limits{Wall: 5 * time.Minute}, kind: runtime.Deadlock},
	{claim: "a thenable that never calls back is a deadlock", source: "await { then() {} }", kind: runtime.Deadlock},
	{claim: "calls are counted", source: "for (let i = 0; i < 100; i++) { try { await tools.echo({ i }) } catch {} }", limits: runtime.Limits{Calls: 5}, kind: runtime.CallLimit, calls: "echo echo echo echo echo"},
	{claim: "refused calls are counted", source: "for (;;) { try { await tools.echo({ a: 1n }) } catch {} }", limits: runtime.Limits{Calls: 50}, kind: runtime.CallLimit},
	{claim: "a value over the limit fails", source: "return 'x'.repeat(100000)", limits: runtime.Limits{OutputBytes: 1000}, kind: runtime.OutputLimit},
	{claim: "timers are counted", source: "for (;;) setTimeout(() => {}, 1000)", kind: runtime.Exception, message: "timers"},
	{claim: "tampering with prototypes falsifies no call", source: `
		Object.prototype.path = '/etc/passwd'
		Object.prototype.toJSON = () => ({ evil: 1 })
		Object.defineProperty(Object.prototype, 'seen', { set(v) { this.evil = v } })
		Array.prototype[Symbol.iterator] = function* () { yield 'evil' }
		Array.prototype.push = Array.prototype.map = Array.prototype.join = () => { throw 'evil' }
		JSON.stringify = JSON.parse = () => ({ evil: 1 })
		Promise.prototype.then = () => { throw 'evil' }
		Object.keys = Object.getOwnPropertyNames = () => ['evil']
		String.prototype.toString = Number.prototype.toString = () => 'evil'
		const r = await tools.echo({ a: 1, seen: [2] })
		return { r, own: Object.hasOwn(r, 'seen') }`, value: `{"r":{"a":1,"seen":[2]},"own":true}`, calls: "echo"},
	{claim: "replacing Error and Promise falsifies no rejection", source: "globalThis.Error = globalThis.TypeError = class { constructor() { return { evil: 1 } } }; globalThis.Promise = null; try { await tools.fail() } catch (e) { return e.code }", value: `"E7"`},
	{claim: "the host's object cannot be replaced", source: "globalThis.tools = { echo: () => 'evil' }\ntry { tools.echo = () => 'evil' } catch {}\ntry { Object.defineProperty(tools, 'echo', { value: () => 'evil' }) } catch {}\ntry { Object.setPrototypeOf(tools, { x: 1 }) } catch {}\ntry { delete tools.echo } catch {}\nreturn [await tools.echo({ a: 1 }), await Function('return this')().tools.echo({ b: 1 }), Object.isFrozen(tools)]", value: `[{"a":1},{"b":1},true]`},
	{claim: "a guard cannot be removed", source: "delete String.prototype.repeat; try { return String.prototype.repeat.call('x', 2 ** 40).length } catch (e) { return e.name }", value: `"TypeError"`},
}
