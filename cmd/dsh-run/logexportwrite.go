package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/dsh-run/dsh/session"
)

// exportWriter writes the document call by call, so that the blobs of no more
// than one call are in memory.
type exportWriter struct {
	w        *bufio.Writer
	path     string
	problems []exportProblem
	err      error // the first; then nothing more is written
}

func (w *exportWriter) document(x *export) {
	w.text(`{"session":`)
	w.value(x.session)
	w.text(fmt.Sprintf(",\n\"events\":%d,\n\"permissions\":", x.events))
	list(w, x.permissions, func(p record) { w.value(p) })
	w.text(",\n\"calls\":")
	list(w, x.calls, w.call)
	w.text(",\n\"execs\":")
	list(w, x.execs, func(e *exportWork) { w.value(e) })
	w.text(",\n\"jobs\":")
	list(w, x.jobs, func(j *exportWork) { w.value(j) })
	w.text(",\n\"other\":")
	list(w, x.other, func(e exportEvent) { w.value(e) })
	w.text(",\n\"problems\":")
	list(w, w.problems, func(p exportProblem) { w.value(p) })
	w.text("}\n")
}

// call writes a call with its blobs, and then those that it made.
func (w *exportWriter) call(c *exportCall) {
	whole := *c
	whole.Call, whole.Result, whole.Program = w.callData(c.Call), w.resultData(c.Result), w.program(c.Program)
	whole.Approvals = nil
	for _, q := range c.Approvals {
		whole.Approvals = append(whole.Approvals, w.question(q))
	}
	members := w.encode(whole)
	if w.err != nil {
		return
	}
	if len(c.calls) == 0 {
		w.bytes(members)
		return
	}
	w.bytes(bytes.TrimSuffix(members, []byte("}")))
	w.text(`,"calls":`)
	list(w, c.calls, w.call)
	w.text("}")
}

// list writes one item a line.
func list[T any](w *exportWriter, items []T, write func(T)) {
	w.text("[")
	for i, item := range items {
		if i > 0 {
			w.text(",")
		}
		w.text("\n")
		write(item)
	}
	w.text("]")
}

func (w *exportWriter) value(v any) { w.bytes(w.encode(v)) }

func (w *exportWriter) encode(v any) []byte {
	if w.err != nil {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	w.err = enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

func (w *exportWriter) text(s string) { w.bytes([]byte(s)) }

func (w *exportWriter) bytes(b []byte) {
	if w.err == nil {
		_, w.err = w.w.Write(b)
	}
}

// callData is the data of a tool/call with its arguments in place.
func (w *exportWriter) callData(data record) record {
	whole, blob := w.resolve(data, data, "args_ref")
	switch {
	case blob == nil:
	case json.Valid(blob):
		whole["args"] = blob
		delete(whole, "args_text")
	default:
		whole["args_text"] = w.encode(string(blob))
	}
	return whole
}

// resultData is the data of a tool/result with value, content and details in
// place.
func (w *exportWriter) resultData(data record) record {
	whole := w.inPlace(data, data, "value_ref", "value")
	whole = w.inPlace(data, whole, "content_ref", "content")
	var failure record
	if json.Unmarshal(data["error"], &failure) == nil && failure["details_ref"] != nil {
		whole["error"] = w.encode(w.inPlace(data, failure, "details_ref", "details"))
	}
	return whole
}

// inPlace puts the JSON of the blob that a member of data names into another
// member.
func (w *exportWriter) inPlace(event, data record, ref, member string) record {
	whole, blob := w.resolve(event, data, ref)
	switch {
	case blob == nil:
	case json.Valid(blob):
		whole[member] = blob
	default:
		w.problem(event, fmt.Errorf("%s: the blob is no JSON", ref))
		whole[ref] = data[ref]
	}
	return whole
}

// resolve reads the blob that a member of data names, and returns a copy of
// data without the member. Where the blob cannot be read it is nil and data is
// as it was. The event, which data is a part of, is named in a problem.
func (w *exportWriter) resolve(event, data record, member string) (record, []byte) {
	if data[member] == nil {
		return data, nil
	}
	ref, err := readRef(data[member])
	var blob []byte
	if err == nil {
		blob, err = session.ReadBlob(w.path, ref)
	}
	if err != nil {
		w.problem(event, fmt.Errorf("%s: %w", member, err))
		return data, nil
	}
	whole := make(record, len(data))
	for name, value := range data {
		if name != member {
			whole[name] = value
		}
	}
	return whole, blob
}

// question is one with its preview in place.
func (w *exportWriter) question(q *exportQuestion) *exportQuestion {
	whole := *q
	asked, blob := w.resolve(q.Asked, q.Asked, "preview_ref")
	if blob != nil {
		asked["preview"] = w.encode(string(blob))
	}
	whole.Asked = asked
	return &whole
}

func (w *exportWriter) program(p *exportProgram) *exportProgram {
	if p == nil {
		return nil
	}
	whole := *p
	if start, blob := w.resolve(p.Start, p.Start, "program"); blob != nil {
		source := string(blob)
		whole.Source, whole.Start = &source, start
	}
	return &whole
}

func (w *exportWriter) problem(event record, err error) {
	seq, _ := strconv.ParseUint(string(event["seq"]), 10, 64)
	w.problems = append(w.problems, exportProblem{Seq: seq, Problem: err.Error()})
}
