// Package local has the tools of this machine: read, write and edit for files,
// glob and grep for searches, a shell and its background jobs, and the step
// that spills long results to files.
//
// [New] returns a [Set], whose [Set.Tools] go into a registry. A set keeps for
// each session what that session has seen of files and which jobs it runs.
// Both follow from the session's log, so a resumed session goes on with them.
//
// # Files
//
// A path is resolved once, the way the kernel does it, to a canonical target.
// Everything that is decided is decided about the target, and everything that
// is done is done relative to descriptors of directories that were opened
// without following links. Where a name has been exchanged meanwhile, the call
// fails.
//
// A session can change only what it has seen. Reading a file notes its
// version, a content hash above all, and which bytes were shown. edit needs
// some of the file, write all of it, and both need the file to be still that
// version; touching or copying a file does not make it another one. Comparing
// and changing happen in one turn per file within this process, and a look at
// the file right before it is replaced finds what other processes did.
//
// A changed file is a new one that takes the old one's name: it is written
// beside it, synced and renamed, so nobody sees half of it and an error leaves
// the old one whole. A file that must not exist yet is published without
// replacing. What a new file cannot have (another owner, further hard links)
// is a reason to refuse.
//
// # The fence
//
// A change passes two layers. The first compares the target with
// [policy.WritableRoots], by spelling and by what existing ancestors are, and
// answers in words that tell a model how to go on. In the second the change
// runs on a thread that the kernel confines to the same roots. Where there is
// no such thread the pinned descriptors are what holds, and the result names
// the backend "path".
//
// # Searches
//
// Walking and searching happen in this process, with all processors, and no
// program whose configuration a workspace could own is started. grep looks for
// texts that a match must hold before it runs the expression. Results do not
// depend on timing.
//
// # Present limits
//
// Extended attributes and access control lists of a changed file are lost.
// Another process that changes a file between the last look and the rename,
// which are a system call apart, loses its change. A file over 256 MiB can be
// read but not changed. git looks further into tracked files that its rules
// ignore; searches leave them out, as ripgrep does. Text in UTF-16 is taken
// for binary.
package local
