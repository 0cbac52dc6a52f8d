// Package tools is the road that every call walks: a registry of tools and the
// pipeline in front of them. A call from a program, from a model, from another
// process or from Go goes through [Registry.Call]; there is no second way to
// run a tool.
//
// The stages, in this order:
//
//	log → materialise → listeners → guards → approval → lane → wrappers(guards → body) → post-execute → log → observers
//
// Registration order is nesting order. With listeners L1, L2, wrappers W1, W2
// and post-execute steps P1, P2, each registered first to last:
//
//	verdict = L1(L2(allow))
//	value   = W1(W2(retry(guards, timeout(body))))
//	result  = P1(P2(rendered))
//
// so what was registered first sees a call first and its result last, and can
// override what is inside of it. Listeners may override each other; that is
// why guards exist: each can veto and none can allow.
//
// Whatever is unknown, broken or unanswered is a refusal. A listener, guard,
// wrapper, post-execute step or renderer that panics or fails ends its call
// with an error, never by letting it through.
//
// A sub-agent gets a view of a registry, see [Registry.View]. With a view's
// listener V1 registered before or after L1 of its parent:
//
//	verdict = L1(V1(allow))
//
// Spans and metrics of calls are described at [TelemetryScope]. Package
// toolstest checks the stages that an embedder writes.
package tools
