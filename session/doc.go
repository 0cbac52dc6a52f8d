// Package session keeps what outlives a call: an append-only log of events and
// a store of blobs beside it. Everything else that a session knows (its
// permissions, what files it has seen, what is still running) is folded from
// the events, so resuming, forking and replaying need no second mechanism.
//
// # The file
//
// A log is one JSON object per line, in UTF-8, owner-only:
//
//	{"seq":1,"time":"2026-11-30T08:00:00.000000001Z","type":"session/start","data":{…},"prev":""}
//
// seq counts from 1 without gaps. prev is the SHA-256, in hex, of the line
// before without its newline; the first line has none. The chain is not keyed:
// it shows accidents and careless edits, not a determined author who rewrites
// every line after the one he changed.
//
// Beside NAME.jsonl lies NAME.d, owner-only: blobs (values too large for a
// line, program texts), spill (long output), tmp (the session's temporary
// directory).
//
// # What is durable
//
// Append returns after one write(2): a killed process loses nothing that was
// acknowledged. What [Log.Sync] acknowledged, blobs included, also survives a
// power cut. What a crash leaves behind the last event (a torn line, NUL bytes,
// blank lines) is moved aside when the log is opened again, and the log says so.
//
// # Damage
//
// [Read] and [Open] stop at the first bad line, because who acts on a partial
// view of a session does harm. [Survey] reports each bad line and goes on, for
// whoever shows a log. An event that breaks the chain is never moved aside.
//
// # What a fork shares
//
// [Fork] copies the first events into a log of their own; only blobs, which
// never change, may be one file with two names.
//
// # What is left out
//
// [Log.Redact] keeps texts that match a pattern out of everything that is
// written; see [Redactor] for what it cannot see.
package session
