// Command denials runs commands in the sandbox and without it, and compares
// what the sandbox is said to have denied with what it denied.
//
// Each line of commands.txt is run by every backend, in both modes, in English
// and in German, as root and as an ordinary user, in a place made anew. The
// label comes from the same command as the same user without confinement: the
// sandbox denied something if the command failed and does not fail there, or if
// it left other files. It prints every row, precision and recall, and the share
// of denials that are known by their path; it exits 1 when a goal is missed.
//
//	go run ./scripts/denials            all rows; as root, for both users
//	go run ./scripts/denials -wrong     only those that are judged wrongly
//	go run ./scripts/denials -save FILE also write the rows as JSON lines
package main
