// Package worker lets the program that imports it be the confined child
// process in which [runtime.ProcessEngine] runs other programs:
//
//	import _ "github.com/dsh-run/dsh/runtime/worker"
//
// Nothing else is needed. The engine starts the same executable again with a
// variable set, and the init function of this package turns that process into
// a worker before main runs. A program whose main is empty and that imports
// this package is a worker binary for ProcessOptions.Binary.
//
// The variable alone does nothing: without the socket and the greeting of a
// parent the process ends with an explanation and exit code 125. A worker can
// start no process, so that it cannot start workers either.
//
// # What runs in the worker
//
// Go initialises packages in the order of their import paths as far as their
// dependencies allow. Those that sort earlier than this one, or that it
// depends on, run their init functions in the worker too: with an empty
// environment, no standard input, and no right to open any file but the
// executable, before the system call filter is in place. An init function that
// cannot bear that must move to main, or a small worker binary be named.
package worker
