// Command nosandbox runs a command on a machine without sandboxes: its kernel
// knows no Landlock, and nobody may make namespaces.
//
//	nosandbox argv...
//
// It stands in for hardened containers and old kernels in tests. The system
// calls of Landlock fail with ENOSYS, making or entering a namespace with
// EPERM, and this holds for all that the command starts. Everything else is as
// it was.
//
// It becomes the command, so the exit status is the command's; 125 says that
// nosandbox itself failed, 126 that the command cannot be executed, 127 that
// there is no such command.
package main
