package toolstest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsh-run/dsh/tools"
)

// straggles is how long the suite looks for what a stage does after it has
// returned.
const straggles = 100 * time.Millisecond

// hangs is how long a stage may take before the suite calls it hung. It says
// nothing about speed.
func hangs() time.Duration { return time.Duration(hangTime.Load()) }

// hangTime can be changed while calls that were given up on still look at it.
var hangTime atomic.Int64

func init() { hangTime.Store(int64(10 * time.Second)) }

// maxAttempts is how often a wrapper may run one failing body.
const maxAttempts = 16

// claim is what every stage of a kind must do.
type claim string

// The claims about all kinds of stages.
const (
	returns    claim = "returns from every call while its context lives"
	ends       claim = "returns when the context has ended"
	noPanic    claim = "panics on no call"
	concurrent claim = "may run many times at once"
	leaves     claim = "leaves alone what it was given"
)

// subject is a stage under test.
type subject struct {
	// install puts the stage on the road, watched by the probe.
	install func(r *tools.Registry, p *probe)
	// claims that calls of all shapes put to the test, beside those about all
	// kinds.
	claims []claim
	// inside are claims that are tested by ending the context while what is
	// inside of the stage runs.
	inside []claim
}

// check is one claim about one stage; find says what speaks against it.
type check struct {
	claim claim
	find  func(t testing.TB) error
}

func (s subject) checks() (list []check) {
	for _, c := range append([]claim{returns, noPanic, leaves}, s.claims...) {
		list = append(list, check{c, func(t testing.TB) error { return s.shapes(t, c) }})
	}
	list = append(list,
		check{concurrent, s.crowd},
		check{ends, s.gone})
	for _, c := range s.inside {
		list = append(list, check{c, func(t testing.TB) error { return s.leaving(t, c) }})
	}
	return list
}

func (s subject) run(t *testing.T) {
	t.Helper()
	for _, c := range s.checks() {
		t.Run(string(c.claim), func(t *testing.T) {
			if err := c.find(t); err != nil {
				t.Error(err)
			}
		})
	}
}
