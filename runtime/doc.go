// Package runtime runs one program against named host functions. It knows
// nothing of tools, policies or models: a program calls functions that its
// host lists, and what it returns, prints and does wrong comes back as an
// [Outcome].
//
// # Engines
//
// An [Engine] runs programs of one language behind one kind of wall. All pass
// the suite in runtimetest, which also says what programs may rely on.
//
// [NewInProcess] is JavaScript and TypeScript inside the calling process, for
// programs that are trusted. [NewProcess] runs the same engine in a confined
// child process, and is what programs that a model wrote need: a deadline or a
// memory limit that can be missed is none.
//
// # One run
//
// A run has a fresh world. The goroutine that calls Run owns it: it compiles
// the source, starts the program, and then settles promises as replies arrive
// and timers fall due, until the program's own promise is settled. When that
// promise is pending, and no call is in flight and no timer is set, nothing can
// ever settle it, and the run ends at once as a deadlock.
//
// A second goroutine watches the clocks. Compute is the time during which the
// program, or work on its behalf such as compiling and copying values, keeps
// the first goroutine busy. Wall is everything, less the time a person was
// waited for. To stop a run is to record the reason, once, and then to
// interrupt: the reason stays, and whatever is about to enter the program again
// looks at it first, so that no catch, finally, microtask or timer outlives it.
// Only then are the calls in flight cancelled; they are awaited before Run
// returns.
//
// # Source
//
// A source is the body of an async function. Plain JavaScript is compiled as
// it is; what does not compile is taken for TypeScript, or for JavaScript that
// the engine lacks, and transformed first. Positions in failures, stacks and
// calls are those of the source as the caller gave it, a Markdown fence
// included, with columns in UTF-16 units.
//
// # Values
//
// Values cross as JSON that means exactly what the program had, or not at all.
// What JSON cannot say is refused with its path: cycles, functions, symbols,
// BigInt, NaN, infinities, holes and undefined items of arrays, halves of
// surrogate pairs, and instances of classes that have no toJSON. Members that
// are undefined, and those with a symbol as key, are left out; -0 is 0; a Date
// is its ISO string. In the other direction, integers beyond ±(2^53-1) become
// strings, because no number of the program could hold them.
//
// # Errors
//
// A call that the host answers with a [CallError] rejects with an instance of
// the class that it names, which has the message and the fields as own
// enumerable properties. Calls whose arguments are no JSON, or too large,
// reject with the first of [Host.ErrorClasses] and the code INVALID_ARGS or
// VALUE_TOO_LARGE, and never reach the host. A rejection that the program never
// looks at is printed when it ends well.
package runtime
