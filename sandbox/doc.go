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
// Backends form an ordered chain, [Chain]; the first one that works here is
// used. Each is probed by doing: with its real profile a command must succeed
// in what is allowed and fail in what is not.
//
// On Linux the first is bubblewrap, where it is installed and may make
// namespaces: everything is mounted read-only but the writable roots, and a
// process namespace ends with the command, or with this process. Its binary is
// never taken from where commands may write. It tells on a descriptor that the
// command does not have whether the command was started; without that record
// the sandbox broke, and nothing ran.
//
// The second is Landlock, which needs no program. A Landlock domain belongs to a thread and passes to
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
// # Code that git would run later
//
// A command that may write the workspace could plant hooks, or keys of git's
// configuration, that run outside when somebody uses git there. Mounts hold a
// part of that, Landlock none. So around each such run the state is compared:
// new hooks and what leads git elsewhere are put into quarantine, keys that
// execute are set back one by one, and other edits stay. What was undone is in
// [policy.Confinement.Undone]. Not seen are repositories in directories below,
// submodules among them, and what happens during the run itself.
//
// # What is not promised
//
// Reading is free, and so is the network. Each [policy.Confinement] lists by
// name what was not governed: connections to sockets in the file system, the
// view of other processes, processes that outlive the call, hard links that
// were there before. With Landlock in workspace-write changes of metadata
// outside, such as chmod, cannot be refused and make the enforcement partial.
//
// # Processes
//
// A [Tree] is a started process with what it starts in turn. Its end is the
// end of that one process, whoever else still holds its pipes; what is left
// then is ended too, as far as it can be found. Nothing here waits for
// processes that it did not start.
package sandbox
