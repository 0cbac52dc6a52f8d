package runtime

import (
	"context"
	"encoding/binary"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// peerEnv makes this test binary the worker of the row with that claim.
const peerEnv = "DSH_RUNTIME_TEST_PEER"

func init() {
	claim, asked := os.LookupEnv(peerEnv)
	if !asked {
		return
	}
	for _, row := range peers {
		if row.claim == claim {
			p := &peer{File: os.NewFile(3, "parent")}
			p.in = newFrameReader(p, 1<<30)
			thisPeer = p
			row.act(p)
		}
	}
	os.Exit(0)
}

// peer is the worker's end of the protocol, for those who break it.
type peer struct {
	*os.File
	in *frameReader
}

// thisPeer keeps the pipe open in a peer that no longer uses it: a file that
// nothing refers to is closed.
var thisPeer *peer

func (p *peer) send(kind frameKind, id uint32, body string) {
	_, _ = p.Write(appendFrame(nil, kind, id, body))
}

func (p *peer) receive() frame {
	f, err := p.in.next()
	if err != nil {
		os.Exit(0)
	}
	return f
}

// linger waits to be killed.
func (p *peer) linger() {
	for {
		p.receive()
	}
}

func (p *peer) ready() { p.send(frameReady, 0, string(p.receive().body)) }

// start is all that an honest worker does before the program's first statement.
func (p *peer) start() {
	p.ready()
	p.receive()
	p.send(frameStarted, 0, "")
}

func (p *peer) call(id uint32, name, args string) {
	_, _ = p.Write(appendCall(nil, Call{N: int(id), Name: name, Args: []byte(args)}))
}

// done sends a report and a value.
func (p *peer) done(report, value string) {
	p.send(frameDone, 0, string(appendBlob(nil, report))+value)
}

// started makes an act of what comes after the start. The worker then lingers,
// so that only what it said can end the run.
func started(act func(*peer)) func(*peer) {
	return func(p *peer) {
		p.start()
		act(p)
		p.linger()
	}
}

func says(kind frameKind, id uint32, body string) func(*peer) {
	return started(func(p *peer) { p.send(kind, id, body) })
}

func reports(report, value string) func(*peer) {
	return started(func(p *peer) { p.done(report, value) })
}

func dies(words string, code int) func(*peer) {
	return func(p *peer) {
		p.start()
		os.Stderr.WriteString(words)
		os.Exit(code)
	}
}

const success = `{"has_value":true,"compute":1,"calls":0}`

// peers are workers that do what no worker does, and how each run ends.
var peers = []struct {
	claim   string
	act     func(*peer)
	kind    FailureKind // empty: the run succeeds
	message string      // a part of the failure's
}{
	// before it is ready
	{"one that ends before it is ready is no worker", func(*peer) { os.Exit(3) }, EngineExit, "exit code 3"},
	{"one that ends early is told apart by the option that names another", func(*peer) {}, EngineExit, "ProcessOptions.Binary"},
	{"one that is never ready is given up", func(p *peer) { p.linger() }, EngineExit, "not ready within 5s"},
	{"one that is never ready is told the option as well", func(p *peer) { p.linger() }, EngineExit, "ProcessOptions.Binary"},
	{"one that cannot lock down says why", func(p *peer) { p.send(frameFailed, 0, "no seccomp"); p.linger() }, SandboxUnavailable, "no seccomp"},
	{"a wrong greeting is a breach", func(p *peer) { p.send(frameReady, 0, strings.Repeat("x", helloBytes)); p.linger() }, Protocol, "first frame"},
	{"an outcome without a program is a breach", func(p *peer) { p.done(success, "1"); p.linger() }, Protocol, "first frame"},
	{"text instead of frames is a breach", func(p *peer) { p.WriteString("hello, this is no frame"); p.linger() }, Protocol, "a frame of"},
	{"one that talks before it is asked is a breach", func(p *peer) { p.ready(); p.send(frameLog, 0, "\x00early"); p.linger() }, Protocol, "before the program started"},
	// frames
	{"an unknown kind is a breach", says(99, 0, ""), Protocol, "kind 99"},
	{"kind 0 is a breach", says(0, 0, ""), Protocol, "kind 0"},
	{"a reply forged by the worker is a breach", says(frameReply, 1, "\x011"), Protocol, "with an id"},
	{"a parent's frame is a breach", says(frameStop, 0, ""), Protocol, "kind 4"},
	{"an id where none belongs is a breach", says(frameLog, 7, "\x00x"), Protocol, "with an id"},
	{"a second start is a breach", says(frameStarted, 0, ""), Protocol, "second start"},
	{"a frame of 4 GiB is a breach", started(func(p *peer) { p.Write([]byte{255, 255, 255, 255, byte(frameLog), 0, 0, 0, 0}) }), Protocol, "4294967295 bytes"},
	{"a frame just over the limit is a breach", started(func(p *peer) {
		p.Write(binary.LittleEndian.AppendUint32(nil, uint32(longestFrame(peerLimits))+1))
		p.Write([]byte{byte(frameLog), 0, 0, 0, 0})
	}), Protocol, "at most"},
	{"an end inside a header is a breach", func(p *peer) { p.start(); p.Write([]byte{1, 0}) }, Protocol, "middle of a frame"},
	{"an end inside a body is a breach", func(p *peer) { p.start(); p.Write([]byte{9, 0, 0, 0, byte(frameLog), 0, 0, 0, 0, 0}) }, Protocol, "middle of a frame"},
	// calls
	{"a call before the start is a breach", func(p *peer) { p.ready(); p.receive(); p.call(1, "f", "{}"); p.linger() }, Protocol, "before the program started"},
	{"call 0 is a breach", started(func(p *peer) { p.call(0, "f", "{}") }), Protocol, "call 0"},
	{"a number used twice is a breach", started(func(p *peer) { p.call(1, "f", "{}"); p.call(1, "f", "{}") }), Protocol, "call 1 after call 1"},
	{"numbers that go back are a breach", started(func(p *peer) { p.call(2, "f", "{}"); p.call(1, "f", "{}") }), Protocol, "call 1 after call 2"},
	{"a number over the limit is a breach", started(func(p *peer) { p.call(11, "f", "{}") }), Protocol, "at most 10"},
	{"too many unanswered calls are a breach", started(func(p *peer) {
		for n := range uint32(3) {
			p.call(n+1, "hold", "{}")
		}
	}), Protocol, "more than 2 unanswered"},
	{"arguments that are no JSON are a breach", started(func(p *peer) { p.call(1, "f", "{a:1}") }), Protocol, "not JSON"},
	{"no arguments at all are a breach", started(func(p *peer) { p.call(1, "f", "") }), Protocol, "not JSON"},
	{"arguments that are no UTF-8 are a breach", started(func(p *peer) { p.call(1, "f", "\"\xff\"") }), Protocol, "not JSON"},
	{"arguments over the limit are a breach", started(func(p *peer) { p.call(1, "f", `"`+strings.Repeat("x", 1<<20)+`"`) }), Protocol, "1048578 bytes of arguments"},
	{"a name that is no UTF-8 is a breach", started(func(p *peer) { p.call(1, "\xff", "{}") }), Protocol, "name is not UTF-8"},
	{"a call that ends in its name is a breach", says(frameCall, 1, "\x01\x00\x00\x00\x01\x00\x00\x00\xff\xff\x00\x00f"), Protocol, "ends too early"},
	{"a call from line 2^32-1 is a breach", says(frameCall, 1, "\xff\xff\xff\xff\x01\x00\x00\x00\x01\x00\x00\x00f{}"), Protocol, "line 4294967295"},
	{"a name that nobody listed reaches the host as it is", started(func(p *peer) {
		p.call(1, "nobody.listed", "{}")
		p.done(`{"has_value":true,"compute":1,"calls":1}`, string(parseReply(p.receive().body).Value))
	}), "", `"nobody.listed"`},
	// printed lines
	{"a line of an unknown level is a breach", says(frameLog, 0, "\x09x"), Protocol, "unknown level"},
	{"a line without a level is a breach", says(frameLog, 0, ""), Protocol, "unknown level"},
	{"a line that is no UTF-8 is a breach", says(frameLog, 0, "\x00\xff"), Protocol, "not UTF-8"},
	// outcomes
	{"a value that is no JSON is a breach", reports(success, "{a:1}"), Protocol, "not JSON"},
	{"a value that is no UTF-8 is a breach", reports(success, "\"\xff\""), Protocol, "not JSON"},
	{"a value that is missing is a breach", reports(success, ""), Protocol, "not JSON"},
	{"a value that should be missing is a breach", reports(`{"compute":1,"calls":0}`, "1"), Protocol, "that is none"},
	{"a value over the limit is a breach", reports(success, `"`+strings.Repeat("x", 4000)+`"`), Protocol, "a value of 4002 bytes"},
	{"a report that is no JSON is a breach", reports("{", ""), Protocol, "cannot be decoded"},
	{"a report with an unknown field is a breach", reports(`{"evil":1}`, ""), Protocol, "evil"},
	{"a report that never ends is a breach", reports(`{"failure":{"kind":"exception","message":"`+strings.Repeat("x", 2<<20)+`"}}`, ""), Protocol, "bytes"},
	{"a report that is shorter than it says is a breach", says(frameDone, 0, "\xff\x00\x00\x00{}"), Protocol, "ends too early"},
	{"a failure that is the host's to find is a breach", reports(`{"failure":{"kind":"denied","message":"m"},"compute":1,"calls":0}`, ""), Protocol, "denied"},
	{"a failure of no known kind is a breach", reports(`{"failure":{"kind":"x","message":"m"},"compute":1,"calls":0}`, ""), Protocol, `"x"`},
	{"a timeout of no known clock is a breach", reports(`{"failure":{"kind":"timeout","message":"m","clock":"sun"},"compute":1,"calls":0}`, ""), Protocol, "sun"},
	{"a failure from a negative line is a breach", reports(`{"failure":{"kind":"exception","message":"m","line":-1},"compute":1,"calls":0}`, ""), Protocol, "line -1"},
	{"a thrown thing that is no object is a breach", reports(`{"failure":{"kind":"exception","message":"m","thrown":[1]},"compute":1,"calls":0}`, ""), Protocol, "not a JSON object"},
	{"a failure with a value is a breach", reports(`{"failure":{"kind":"exception","message":"m"},"has_value":true,"compute":1,"calls":0}`, "1"), Protocol, "a failure and a success"},
	{"a negative count is a breach", reports(`{"compute":-1,"calls":0}`, ""), Protocol, "negative"},
	{"a success before the start is a breach", func(p *peer) { p.ready(); p.receive(); p.done(success, "1"); p.linger() }, Protocol, "before the program started"},
	{"an unanswered call that never came is a breach", reports(`{"unanswered":[5],"compute":1,"calls":5}`, ""), Protocol, "call 5"},
	{"calls out of order are a breach", reports(`{"not_started":[3,2],"compute":1,"calls":5}`, ""), Protocol, "out of order"},
	{"a call beyond the limit is a breach", reports(`{"not_started":[99],"compute":1,"calls":5}`, ""), Protocol, "call 99"},
	{"a started call that did not start is a breach", started(func(p *peer) {
		p.call(1, "hold", "{}")
		p.done(`{"not_started":[1],"compute":1,"calls":1}`, "")
	}), Protocol, "call 1 did not start"},
	{"an answer that nobody gave is a breach", started(func(p *peer) {
		p.call(1, "hold", "{}")
		p.done(`{"compute":1,"calls":1}`, "")
	}), Protocol, "nobody gave"},
	{"fewer calls than were made are a breach", started(func(p *peer) {
		p.call(1, "f", "{}")
		p.receive()
		p.done(`{"compute":1,"calls":0}`, "")
	}), Protocol, "0 calls after 1"},
	{"of two outcomes the first counts", started(func(p *peer) { p.done(success, "1"); p.done(success, "2") }), "", "1"},
	{"nothing after the outcome counts", started(func(p *peer) { p.done(success, "1"); p.call(1, "f", "{}"); p.send(99, 9, "x") }), "", "1"},
	// deaths
	{"last words of an exhausted heap are the memory limit", dies("fatal error: runtime: out of memory\n\ngoroutine 1\n", 2), MemoryLimit, "memory"},
	{"last words of a refused mapping are the memory limit", dies("runtime: mmap: cannot allocate memory\n", 2), MemoryLimit, "memory"},
	{"last words of a refused thread are the memory limit", dies("runtime/cgo: pthread_create failed: Resource temporarily unavailable\n", 2), MemoryLimit, "memory"},
	{"a panic is told", dies("panic: something\n\ngoroutine 1 [running]:\nmain.main()\n", 2), EngineExit, "panic: something"},
	{"a silent end is told by its code", dies("", 7), EngineExit, "exit code 7"},
	{"an end without an outcome is no success", dies("", 0), EngineExit, "exit code 0"},
	{"a signal is told by its name", started(func(*peer) { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }), EngineExit, "signal: killed"},
	{"a flood of last words is cut", dies(strings.Repeat("x", 1<<20), 7), EngineExit, "exit code 7"},
	{"a stack that overflows in the parser is a syntax error", func(p *peer) {
		p.ready()
		p.receive()
		os.Stderr.WriteString("runtime: goroutine stack exceeds 67108864-byte limit\nfatal error: stack overflow\n")
		os.Exit(2)
	}, Syntax, "deep"},
	// silence
	{"one that says nothing meets the wall", started(func(*peer) {}), Timeout, "3s"},
	{"one that reads nothing meets the wall", func(p *peer) { p.ready(); select {} }, Timeout, "3s"},
	{"one that takes no answers meets the wall", func(p *peer) {
		p.start()
		p.call(1, "big", "{}")
		p.call(2, "big", "{}")
		select {}
	}, Timeout, "3s"},
	{"one that only prints meets the wall", started(func(p *peer) {
		for {
			p.send(frameLog, 0, "\x00"+strings.Repeat("x", 1000))
		}
	}), Timeout, "3s"},
}

// peerLimits are those of every run with a peer.
var peerLimits = Limits{Wall: 3 * time.Second, Calls: 10, Unanswered: 2, CallBytes: 1 << 20, OutputBytes: 3000}.WithDefaults()

func TestProcessBearsHostileWorkers(t *testing.T) {
	workerRegistered = true
	for _, row := range peers {
		t.Run(row.claim, func(t *testing.T) {
			t.Parallel()
			o, err := runPeer(t, context.Background(), row.claim)
			if err != nil {
				t.Fatal(err)
			}
			got := Failure{Message: string(o.Value)}
			if o.Failure != nil {
				got = *o.Failure
			}
			if got.Kind != row.kind || !strings.Contains(got.Message, row.message) {
				t.Errorf("the run ends as %q: %s; want %q with %q", got.Kind, got.Message, row.kind, row.message)
			}
			if len(got.Message) > 1000 {
				t.Errorf("the message has %d bytes", len(got.Message))
			}
		})
	}
}

// runPeer runs a program whose worker is a peer; it fails when that hangs.
func runPeer(t *testing.T, ctx context.Context, claim string) (o Outcome, err error) {
	t.Helper()
	e, err := NewProcess(&ProcessOptions{Spares: -1, ReadyTimeout: 5 * time.Second, Start: func(cmd *exec.Cmd, _ string) (Confinement, error) {
		cmd.Env = []string{peerEnv + "=" + claim}
		return Confinement{}, cmd.Start()
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		args := []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
		o, err = e.Run(ctx, Program{Source: "return 1", Args: args, Limits: peerLimits}, Host{Start: answerPeer})
	}()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the run does not end")
	}
	return o, err
}

// answerPeer answers hold when it is cancelled, big with all that may cross,
// and everything else with the name of the call.
func answerPeer(ctx context.Context, call Call, reply func(Reply)) {
	switch call.Name {
	case "hold":
		context.AfterFunc(ctx, func() { reply(Reply{}) })
	case "big":
		go reply(Reply{Value: []byte(`"` + strings.Repeat("x", 1<<20-2) + `"`)})
	default:
		go reply(Reply{Value: appendQuoted(nil, call.Name)})
	}
}
