// Package toolstest is the conformance suite of what an embedder puts on the
// road of a [tools.Registry]: listeners, guards, wrappers, post-execute steps
// and observers. It finds what is easily got wrong and shows late: a stage that
// hangs when its caller has gone, that panics on a call nobody thought of, that
// cannot run twice at a time, or that relies on something the road does not do.
//
//	func TestAudit(t *testing.T) {
//		toolstest.Observer(t, audit.New(io.Discard).Observe)
//	}
//
// Each claim is a subtest. The stage is called through a real registry with
// calls of all shapes, with and without a session, some of them refused or
// failing. It should be set up so that it lets calls through: a stage that
// refuses everything passes the claims about what follows it unseen. Run the
// suite under the race detector; that is what finds shared state.
package toolstest
