//go:build unix

package session_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsh-run/dsh/session"
)

func init() { children["append"] = appendUntilKilled }

// appendUntilKilled appends from several goroutines and says on stdout what
// has been acknowledged.
func appendUntilKilled(path string) {
	log, err := session.Open(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		log, err = session.Create(path, "/w", nil)
	}
	die(err)
	for range 3 {
		go appendForever(log)
	}
	appendForever(log)
}

func appendForever(log *session.Log) {
	for {
		e, err := log.Append(session.ProgramLog, note{strings.Repeat("plain text, é\n", someSize()/16)})
		die(err)
		_, err = fmt.Printf("%d %s\n", e.Seq, sha(e.Data))
		die(err)
	}
}

// someSize is mostly small and at times several MiB.
func someSize() int {
	if rand.IntN(12) == 0 {
		return 1<<20 + rand.IntN(3<<20)
	}
	return 10 + rand.IntN(1<<rand.IntN(15))
}

// Whenever a writer is killed, the log opens again, has every event that was
// acknowledged, and says whether its tail was torn.
func TestAKilledWriterLosesNothingThatWasAcknowledged(t *testing.T) {
	kills, wantTorn := 200, 50
	if testing.Short() || raceDetector {
		kills, wantTorn = 20, 1
	}
	torn, acknowledged := 0, 0
	victim := newVictim(t)
	for i := range kills {
		if i%5 == 0 || victim.isBig(t) {
			victim = newVictim(t)
		}
		acknowledged += victim.appendAndKill(t, i%3 > 0)
		if victim.verify(t) {
			torn++
		}
		if t.Failed() {
			t.Fatalf("after kill %d", i+1)
		}
	}
	t.Logf("%d kills, %d torn tails, %d acknowledged events", kills, torn, acknowledged)
	// Other kernels may finish a write before they end its process.
	if goruntime.GOOS == "linux" && torn < wantTorn {
		t.Errorf("%d of %d kills left a torn tail, want at least %d", torn, kills, wantTorn)
	}
}

// victim is a log whose writers are killed, one after another.
type victim struct {
	path  string
	acked map[uint64]string // seq → hash of the data
}

func newVictim(t *testing.T) *victim {
	return &victim{path: filepath.Join(t.TempDir(), "s.jsonl"), acked: map[uint64]string{}}
}

// isBig says that it would take long to go on with the log.
func (v *victim) isBig(t *testing.T) bool {
	t.Helper()
	info, err := os.Stat(v.path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size() > 8<<20
}

// appendAndKill lets a writer append and kills it, in the middle of a line
// where that is wanted, and else at any time. It returns how many events the
// writer acknowledged.
func (v *victim) appendAndKill(t *testing.T, midLine bool) int {
	t.Helper()
	p := startChild(t, "append", v.path)
	var count atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.listen(p, &count)
	}()
	wait := newWaiter(t, done, p)
	wait.until(func() bool { return count.Load() > 0 })
	if midLine {
		wait.untilMidLine(v.path, rand.IntN(20))
	} else {
		wanted := int64(1 + rand.IntN(20))
		wait.until(func() bool { return count.Load() >= wanted })
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-done
	p.cmd.Wait()
	return int(count.Load())
}

// listen notes what the writer acknowledges until it is dead.
func (v *victim) listen(p *process, count *atomic.Int64) {
	lines := bufio.NewReader(p.out)
	for {
		line, err := lines.ReadString('\n')
		var seq uint64
		var hash string
		if _, scanErr := fmt.Sscan(line, &seq, &hash); err != nil || scanErr != nil {
			return
		}
		v.acked[seq] = hash
		count.Add(1)
	}
}

// verify opens the log and says whether its tail was torn.
func (v *victim) verify(t *testing.T) bool {
	t.Helper()
	torn := endsTorn(t, v.path)
	log, err := session.Open(v.path, nil)
	if err != nil {
		t.Fatalf("the log does not open: %v", err)
	}
	defer log.Close()
	hashes, last := map[uint64]string{}, session.Event{}
	if err := log.Replay(func(e session.Event) {
		if e.Seq != last.Seq+1 {
			t.Errorf("event %d follows %d", e.Seq, last.Seq)
		}
		hashes[e.Seq], last = sha(e.Data), e
	}); err != nil {
		t.Fatal(err)
	}
	for seq, hash := range v.acked {
		if hashes[seq] != hash {
			t.Errorf("event %d was acknowledged with the data's hash %s, but the log has %q", seq, hash, hashes[seq])
		}
	}
	if recovered := last.Type == session.Recovered; recovered != torn {
		t.Errorf("torn tail: %v; the log's last event: %s", torn, last.Type)
	}
	return torn
}

// endsTorn says whether something that is no event follows the last newline.
func endsTorn(t *testing.T, path string) bool {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rest := raw[bytes.LastIndexByte(raw, '\n')+1:]
	return len(rest) > 0 && !json.Valid(rest)
}

// waiter waits for what a child does.
type waiter struct {
	t     *testing.T
	dead  <-chan struct{}
	child *process
	end   time.Time
}

func newWaiter(t *testing.T, dead <-chan struct{}, child *process) waiter {
	return waiter{t: t, dead: dead, child: child, end: time.Now().Add(30 * time.Second)}
}

func (w waiter) until(happened func() bool) {
	w.t.Helper()
	for !happened() {
		select {
		case <-w.dead:
			w.child.cmd.Wait()
			w.t.Fatalf("the writer ended by itself: %s", &w.child.errors)
		default:
			goruntime.Gosched()
		}
		if time.Now().After(w.end) {
			w.t.Fatal("the writer hangs")
		}
	}
}

// untilMidLine waits until the file has ended inside a line that many times in
// a row. A line is written by one call, so that this is while it works.
func (w waiter) untilMidLine(path string, times int) {
	w.t.Helper()
	f, err := os.Open(path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	seen := 0
	w.until(func() bool {
		info, err := f.Stat()
		if err != nil {
			w.t.Fatal(err)
		}
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, info.Size()-1); err != nil || last[0] == '\n' {
			seen = 0
			return false
		}
		seen++
		return seen > times
	})
}
