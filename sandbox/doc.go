// Package sandbox starts commands that the kernel keeps from changing files
// outside of what their mode allows.
//
// [Confine] takes the policy of one call and returns its [Confined]: how the
// call is confined, how completely, and the only ways to start something with
// it. It confines or it fails with an [UnavailableError]; it never returns
// anything that runs unconfined. What has no confinement, because a person
// chose danger-full-access, is started by [StartTree], which shares the
// handling of processes and nothing else.
//
// # How a call is confined
//
// Backends form an ordered chain; the first one that works here is used. On
// Linux that is Landlock. A Landlock domain belongs to a thread and passes to
// what the thread starts. So the command is started by a goroutine that is
// locked to a thread of its own: the thread gives up gaining privileges,
// enters the domain, loads a system call filter, forks, and ends with the
// goroutine. No other thread of the host ever changes. This costs a few system
// calls instead of a second program in between.
//
// The domain is built from [policy.WritableRoots], the one place that says
// what a mode may write, and kept for the next call with the same roots as
// long as each of them is still the same directory.
//
// The filter exists because Landlock governs opening, creating, removing,
// renaming and truncating, and nothing else. In read-only it refuses changes
// of metadata with EROFS. In every mode it refuses what would step around
// Landlock: asynchronous rings, mounting, programs in the kernel, input forged
// for a terminal, keyrings, and system calls of a foreign architecture.
//
// # What is not promised
//
// Reading is free, and so is the network. Each [policy.Confinement] lists by
// name what was not governed: connections to sockets in the file system, the
// view of other processes, processes that outlive the call, hard links that
// were there before. In workspace-write changes of metadata outside, such as
// chmod, cannot be refused and make the enforcement partial.
//
// # Processes
//
// A [Tree] is a started process with what it starts in turn. Its end is the
// end of that one process, whoever else still holds its pipes; what is left
// then is ended too, as far as it can be found. Nothing here waits for
// processes that it did not start.
package sandbox
