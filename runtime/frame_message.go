package runtime

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// runSpec is what a worker is told of a run, beside the source.
type runSpec struct {
	Name         string
	Args         json.RawMessage `json:",omitempty"`
	Limits       Limits
	Seed         uint64
	Clock        time.Time
	Object       string
	Functions    []Function
	ErrorClasses []string
}

func appendRun(buf []byte, p *Program, limits Limits, h *Host) ([]byte, error) {
	spec, err := json.Marshal(runSpec{p.Name, p.Args, limits, p.Seed, p.Clock, h.Object, h.Functions, h.ErrorClasses})
	if err != nil {
		return buf, fmt.Errorf("runtime: Program.Args must be JSON: %w", err)
	}
	at := len(buf)
	buf = appendBlob(openFrame(buf, frameRun, 0), spec)
	return closeFrame(appendBlob(buf, p.Source), at), nil
}

func parseRun(payload []byte) (Program, Host, error) {
	b := body{rest: payload}
	meta, source := b.blob(), b.blob()
	var spec runSpec
	if err := json.Unmarshal(meta, &spec); err != nil {
		return Program{}, Host{}, err
	}
	p := Program{Source: string(source), Language: TypeScript, Name: spec.Name, Args: spec.Args,
		Limits: spec.Limits, Seed: spec.Seed, Clock: spec.Clock}
	return p, Host{Object: spec.Object, Functions: spec.Functions, ErrorClasses: spec.ErrorClasses}, nil
}

// How a reply frame begins.
const (
	replyUndefined byte = iota
	replyValue
	replyError
)

func appendReply(buf []byte, n int, r Reply) []byte {
	at := len(buf)
	buf = openFrame(buf, frameReply, uint32(n))
	switch {
	case r.Error != nil:
		buf = appendBlob(append(buf, replyError), r.Error.Class)
		buf = appendBlob(buf, r.Error.Message)
		buf = appendBlob(buf, r.Error.Fields)
	case r.Value != nil:
		buf = append(append(buf, replyValue), r.Value...)
	default:
		buf = append(buf, replyUndefined)
	}
	return closeFrame(buf, at)
}

func parseReply(payload []byte) Reply {
	b := body{rest: payload}
	switch b.u8() {
	case replyValue:
		return Reply{Value: append(json.RawMessage{}, b.rest...)}
	case replyError:
		failed := &CallError{Class: string(b.blob()), Message: string(b.blob())}
		if fields := b.blob(); len(fields) > 0 {
			failed.Fields = append(json.RawMessage{}, fields...)
		}
		return Reply{Error: failed}
	}
	return Reply{}
}

func appendCall(buf []byte, c Call) []byte {
	at := len(buf)
	buf = openFrame(buf, frameCall, uint32(c.N))
	buf = binary.LittleEndian.AppendUint32(buf, uint32(c.Line))
	buf = binary.LittleEndian.AppendUint32(buf, uint32(c.Column))
	buf = appendBlob(buf, c.Name)
	return closeFrame(append(buf, c.Args...), at)
}

// parseCall rebuilds a call; names saves copying those that the host listed.
func parseCall(f frame, names map[string]string, limits Limits) (Call, error) {
	b := body{rest: f.body}
	line, column, name := b.u32(), b.u32(), b.blob()
	switch {
	case b.bad:
		return Call{}, breachf("a call frame that ends too early")
	case line > maxPosition || column > maxPosition:
		return Call{}, breachf("a call from line %d, column %d", line, column)
	case len(b.rest) > limits.CallBytes:
		return Call{}, breachf("%d bytes of arguments, at most %d are legal", len(b.rest), limits.CallBytes)
	case !utf8.Valid(name):
		return Call{}, breachf("a call whose name is not UTF-8")
	case !isJSON(b.rest):
		return Call{}, breachf("a call whose arguments are not JSON")
	}
	known, ok := names[string(name)]
	if !ok {
		known = string(name)
	}
	return Call{N: int(f.id), Name: known, Args: append(json.RawMessage{}, b.rest...),
		Line: int(line), Column: int(column)}, nil
}

// maxPosition bounds lines and columns: no source has more bytes.
const maxPosition = 1 << 30

// levels in the order of their numbers in log frames.
var levels = [...]string{"log", "info", "warn", "error", "debug"}

func appendLog(buf []byte, l Line) []byte {
	at := len(buf)
	level := 0
	for i, name := range levels {
		if name == l.Level {
			level = i
		}
	}
	buf = append(openFrame(buf, frameLog, 0), byte(level))
	return closeFrame(append(buf, l.Text...), at)
}

func parseLog(payload []byte) (Line, error) {
	b := body{rest: payload}
	level := b.u8()
	switch {
	case b.bad || int(level) >= len(levels):
		return Line{}, breachf("a printed line of an unknown level")
	case !utf8.Valid(b.rest):
		return Line{}, breachf("a printed line that is not UTF-8")
	}
	return Line{Level: levels[level], Text: string(b.rest)}, nil
}
