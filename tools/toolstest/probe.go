package toolstest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/dsh-run/dsh/tools"
)

// probe stands around the stage under test and writes down what speaks against
// a claim.
type probe struct {
	mu    sync.Mutex
	found map[claim][]string
	enter func()
	reach func()
	late  chan struct{} // closed when the stage does something after it has returned
	once  sync.Once
}

func newProbe() *probe {
	return &probe{found: map[claim][]string{}, late: make(chan struct{})}
}

func (p *probe) find(c claim, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found[c] = append(p.found[c], fmt.Sprintf(format, args...))
}

// against is what speaks against the claim.
func (p *probe) against(c claim) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return joined(p.found[c])
}

// onEnter arranges that f runs when the stage is entered next.
func (p *probe) onEnter(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.enter = f
}

// onReach arranges that f runs when what is inside of the stage begins to run.
func (p *probe) onReach(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reach = f
}

func (p *probe) entered() {
	p.mu.Lock()
	f := p.enter
	p.mu.Unlock()
	if f != nil {
		f()
	}
}

// straggle waits for what the stage may do after it has returned.
func (p *probe) straggle() {
	select {
	case <-p.late:
	case <-time.After(straggles):
	}
}

func (p *probe) isLate(c claim, what string) {
	p.find(c, "%s", what)
	p.once.Do(func() { close(p.late) })
}

// watch runs the stage for one call: it contains a panic, and compares what
// the stage was given with what it left.
func (p *probe) watch(call *tools.Call, result *tools.Result, stage func()) {
	before := imageOf(call, result)
	p.entered()
	defer func() {
		if r := recover(); r != nil {
			p.find(noPanic, "it panicked: %v", r)
		}
	}()
	stage()
	if after := imageOf(call, result); !bytes.Equal(before, after) {
		p.find(leaves, "it changed its copy, which changes nothing: what it was given is logged and final")
	}
}

// imageOf is what a stage could change in what it was given.
func imageOf(call *tools.Call, result *tools.Result) []byte {
	image, err := json.Marshal(struct {
		ID, Tool, Args string
		Caller, Mode   any
		Result         *tools.Result
	}{call.ID, call.Tool, string(call.Args), call.Caller, call.Mode, result})
	if err != nil {
		return []byte(err.Error())
	}
	return image
}

// reached says that what is inside of the stage runs, under ctx. It reports
// whether the scene has ended the caller's context by that.
func (p *probe) reached(ctx context.Context) bool {
	p.mu.Lock()
	f := p.reach
	p.mu.Unlock()
	if f == nil {
		return false
	}
	f()
	select {
	case <-ctx.Done():
	case <-time.After(hangs() / 2):
		p.find(keepsContext, "the caller's context has ended, and the body's lives on")
	}
	return true
}
