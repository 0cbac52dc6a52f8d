// Package policy has the words of permission and the decisions that need
// nothing but words: which mode a call runs in, what that mode may write, who
// is asked and what an answer means.
//
// A session's permissions live in its log and nowhere else: [Session] folds
// them from the events, and each setter writes one. What a mode means on disk
// is said once, by [WritableRoots]; the process sandbox and the file tools'
// fence both derive from it, so that bash and write never disagree.
//
// Whom a question reaches is a chain of [Answerer]: [Approvals] puts questions to
// it one after another, and writes each question and each answer to the log.
// [FilePair] lets a script answer.
//
// Every zero value is the strict one: read-only, never, unavailable.
package policy
