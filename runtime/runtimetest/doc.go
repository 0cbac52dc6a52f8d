// Package runtimetest is the conformance suite of engines: what a program may
// rely on, and what no program may do, each as one row with its one outcome.
//
// An engine passes when Run passes:
//
//	func TestConformance(t *testing.T) {
//		runtimetest.Run(t, func(*testing.T) runtime.Engine { return newEngine() }, nil)
//	}
//
// The rows marked Contained need an engine that can kill the program, such as
// one that runs it in a process of its own; they run when Options.Contained
// says that this one can.
package runtimetest
