package session_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/session"
)

func init() { children["open"] = openAtTheGate }

// records is how many events a winner writes.
const records = 200

// openAtTheGate tries to open the log once it reads a byte, and says how that
// went. A winner writes, and keeps the log until stdin ends.
func openAtTheGate(path string) {
	fmt.Println("ready")
	_, err := os.Stdin.Read(make([]byte, 1))
	die(err)
	log, err := session.Open(path, nil)
	if locked := (*session.LockedError)(nil); errors.As(err, &locked) {
		fmt.Println("locked")
		return
	}
	die(err)
	fmt.Println("won")
	for i := range records {
		_, err := log.Append(session.ProgramLog, note{strings.Repeat("x", 1+i*300_000/records)})
		die(err)
	}
	fmt.Println("written")
	io.Copy(io.Discard, os.Stdin)
	die(log.Close())
}

// Of many processes that open one log at once, one wins, and the next can win
// when it is gone, whether it closed the log or was killed while it wrote.
func TestOneOfManyProcessesOpensTheLog(t *testing.T) {
	path := closed(t)
	want := 0
	for _, killed := range []bool{false, true, false} {
		winner, out := contend(t, path, 8)
		if killed {
			winner.cmd.Process.Kill()
			winner.cmd.Wait()
			continue
		}
		if line, err := out.ReadString('\n'); line != "written\n" {
			t.Fatalf("the winner said %q, %v: %s", line, err, &winner.errors)
		}
		winner.in.Close()
		if err := winner.cmd.Wait(); err != nil {
			t.Fatalf("the winner: %v: %s", err, &winner.errors)
		}
		want += records
	}
	got, err := texts(path)
	if err != nil || len(got) < want || len(got) > want+records {
		t.Errorf("the log has %d records, %v; want %d and what the killed writer wrote", len(got), err, want)
	}
}

// contend lets n processes open the log at once. It returns the winner, and
// what that says from then on.
func contend(t *testing.T, path string, n int) (*process, *bufio.Reader) {
	t.Helper()
	all := make([]*process, n)
	outs := make([]*bufio.Reader, n)
	hear := func(i int) string {
		line, err := outs[i].ReadString('\n')
		if err != nil {
			t.Fatalf("process %d: %v: %s", i, err, &all[i].errors)
		}
		return strings.TrimSpace(line)
	}
	for i := range all {
		all[i] = startChild(t, "open", path)
		outs[i] = bufio.NewReader(all[i].out)
		if said := hear(i); said != "ready" {
			t.Fatalf("process %d said %q", i, said)
		}
	}
	for _, p := range all {
		if _, err := p.in.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	winner := -1
	for i := range all {
		switch said := hear(i); {
		case said == "won" && winner < 0:
			winner = i
		case said != "locked":
			t.Fatalf("process %d said %q; process %d won", i, said, winner)
		}
	}
	if winner < 0 {
		t.Fatal("nobody won")
	}
	return all[winner], outs[winner]
}
