package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/dsh-run/dsh/ptc"
	"github.com/dsh-run/dsh/runtime"
)

// live shows a run while it goes on: printed lines on stdout, and on a
// terminal the running calls on stderr.
type live struct {
	silent bool // no lines: they come in the JSON object
	abort  context.CancelCauseFunc
	board  *board
}

// screen is the one place that draws on the terminal; a question takes it over.
var screen = &board{}

// newLive returns what shows a run. abort ends the run when nobody can read
// what it prints.
func newLive(f *sessionFlags, abort context.CancelCauseFunc) *live {
	l := &live{silent: f.json, abort: abort, board: screen}
	if !f.quiet && !f.json && term.IsTerminal(int(os.Stderr.Fd())) {
		screen.begin()
	}
	return l
}

func (l *live) line(line runtime.Line) {
	if l.silent {
		return
	}
	l.board.aside(func() {
		if _, err := fmt.Println(line.Text); err != nil {
			l.abort(fmt.Errorf("a printed line could not be written: %w", err))
		}
	})
}

func (l *live) call(id, tool string, ended *ptc.SubCall) {
	if ended == nil {
		l.board.started(id, tool)
		return
	}
	l.board.ended(id)
}

func (l *live) end() { l.board.end() }

// maxShown is how many running calls get a line of their own.
const maxShown = 4

const (
	redrawEvery = 100 * time.Millisecond
	eraseLine   = "\r\x1b[2K"
	lineUp      = "\x1b[1A"
)

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// board draws the running calls at the bottom of a terminal. The zero board
// draws nothing.
type board struct {
	// drawing is held by whoever writes to the terminal. A question holds it
	// for long: calls must not wait for it to be noted.
	drawing sync.Mutex
	on      bool
	drawn   int // lines on the screen
	frame   int
	stop    chan struct{}
	stopped sync.WaitGroup

	mu      sync.Mutex
	running []running
	done    int
}

type running struct {
	id, tool string
	since    time.Time
}

func (b *board) begin() {
	b.drawing.Lock()
	defer b.drawing.Unlock()
	b.on, b.stop = true, make(chan struct{})
	b.stopped.Go(func() { b.tick(b.stop) })
}

func (b *board) tick(stop chan struct{}) {
	ticker := time.NewTicker(redrawEvery)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			if b.drawing.TryLock() {
				b.step()
				b.drawing.Unlock()
			}
		}
	}
}

// step draws the next picture, unless this was the last tick.
func (b *board) step() {
	if b.on {
		b.frame++
		b.redraw()
	}
}

func (b *board) end() {
	b.drawing.Lock()
	if !b.on {
		b.drawing.Unlock()
		return
	}
	b.erase()
	b.on = false
	close(b.stop)
	b.drawing.Unlock()
	b.stopped.Wait()
}

func (b *board) started(id, tool string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = append(b.running, running{id, tool, time.Now()})
}

func (b *board) ended(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = slices.DeleteFunc(b.running, func(r running) bool { return r.id == id })
	b.done++
}

// aside runs f while nothing is drawn and nobody else is aside.
func (b *board) aside(f func()) {
	b.drawing.Lock()
	defer b.drawing.Unlock()
	b.erase()
	f()
}

// settle waits until nobody is aside any more.
func (b *board) settle() { b.aside(func() {}) }

func (b *board) erase() {
	if b.drawn == 0 {
		return
	}
	text := eraseLine
	for range b.drawn - 1 {
		text += lineUp + eraseLine
	}
	fmt.Fprint(os.Stderr, text)
	b.drawn = 0
}

func (b *board) redraw() {
	b.erase()
	lines := b.lines(time.Now())
	for i, line := range lines {
		if i > 0 {
			fmt.Fprintln(os.Stderr)
		}
		fmt.Fprint(os.Stderr, line)
	}
	b.drawn = len(lines)
}

// lines are one per running call, or a summary when there are many.
func (b *board) lines(now time.Time) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	mark := string(spinner[b.frame%len(spinner)])
	if len(b.running) > maxShown {
		return []string{fmt.Sprintf("%s %d calls running, %d done, the oldest for %s",
			mark, len(b.running), b.done, seconds(now.Sub(b.running[0].since)))}
	}
	var lines []string
	for _, r := range b.running {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", mark, r.id, r.tool, seconds(now.Sub(r.since))))
	}
	return lines
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }
