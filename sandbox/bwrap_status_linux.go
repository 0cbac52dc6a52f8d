//go:build linux && (amd64 || arm64)

package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// bwrapStatus is what the runner tells on a descriptor that the command does
// not have: its process, and, only if the command was started, how it ended.
type bwrapStatus struct {
	read, write *os.File

	child atomic.Int64 // the first process inside, which is the runner's too
	exit  *int         // set before told is closed
	told  chan struct{}
}

func openStatus() (*bwrapStatus, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &bwrapStatus{read: read, write: write, told: make(chan struct{})}, nil
}

// statusRecord is one line; a record without an exit code is about the start.
type statusRecord struct {
	Child int  `json:"child-pid"`
	Exit  *int `json:"exit-code"`
}

// follow reads until the runner has ended.
func (s *bwrapStatus) follow() {
	defer close(s.told)
	defer s.read.Close()
	lines := bufio.NewScanner(s.read)
	for lines.Scan() {
		var record statusRecord
		if json.Unmarshal(lines.Bytes(), &record) != nil {
			continue
		}
		if record.Child != 0 {
			s.child.Store(int64(record.Child))
			_ = dropCores(record.Child) // it was forked before the runner's own limit was set
		}
		if record.Exit != nil {
			s.exit = record.Exit
		}
	}
}

func (s *bwrapStatus) own(pid int) bool { return int64(pid) == s.child.Load() }

// statusGrace bounds the wait for the end of the status after the runner's.
const statusGrace = time.Second

var errNoRecord = errors.New("it ended without a record that the command was started; its own words are on the command's stderr. " +
	"Try again, or leave bwrap out of the backends")

func (s *bwrapStatus) end(state *os.ProcessState) (int, syscall.Signal, error) {
	select {
	case <-s.told:
	case <-time.After(statusGrace):
		s.read.SetReadDeadline(time.Now())
		<-s.told
	}
	switch sig := signalOf(state); {
	case s.exit != nil:
		return *s.exit, 0, nil
	case sig != 0:
		return -1, sig, nil // whoever killed the runner killed all that was inside
	default:
		return -1, 0, &setupError{"bwrap", errNoRecord}
	}
}
