// Package ptc is programmatic tool calling: the tool run_code, which runs a
// program whose calls are tool calls. Each of them walks the same pipeline as
// any other call, under the id of its parent: c1:1, c1:2, …
//
// # Order
//
// Sub-calls keep the contract that a model's own calls have. Their
// before-stages run one after another in the order in which the program made
// the calls, and their results are committed in that order. Between the two,
// bodies of calls that their tool calls safe to overlap run side by side, up to
// [Options.InFlight]; every other call waits until all earlier ones are
// committed, runs alone, and holds back what follows until it is committed
// itself.
//
// # What reaches the model
//
// Only what the program prints or returns. The log has every call.
package ptc
