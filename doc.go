// Package dsh runs tools for a model, and programs that call them, on one
// guarded road. It puts the parts together:
//
//	session, err := dsh.Open(ctx, &dsh.Options{Dir: "."})
//	...
//	defer session.Close()
//	report, err := session.Run(ctx, `return (await tools.glob({pattern: "*.go"})).paths.length`, nil)
//
// A [Session] has a registry with the tools of this machine (read, write, edit,
// glob, grep, bash and its jobs) and run_code, whose programs call the others.
// Own tools are added to the registry, as are listeners, guards and wrappers;
// each call, whoever makes it, passes all of them.
//
// # What is allowed
//
// Without options a session reads and changes nothing, and nobody is asked:
// mode read-only, approval policy never. Commands and file changes are confined
// by the kernel. Where it cannot do that nothing runs. A tool of yours runs
// with the rights of your process.
//
// # Programs
//
// Programs run in a confined child process. Nothing has to be wired for that:
// this package makes the program that imports it its own worker, see
// [github.com/dsh-run/dsh/runtime/worker]. All sessions of a process share the
// idle workers.
//
// # What is kept
//
// Everything a session did is in its log, see
// [github.com/dsh-run/dsh/session], and its permissions are nowhere else.
// [Options.Resume] goes on from it, [github.com/dsh-run/dsh/session.Fork] copies
// it up to an event, and [Session.Sub] starts a session that has its own.
package dsh
