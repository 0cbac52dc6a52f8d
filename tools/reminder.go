package tools

import (
	"context"
	"fmt"
)

// reminded is how many failures in a row are worth a reminder.
const reminded = 3

// Reminder is a post-execute step: from the third time on that the same call
// fails in a row in its session, it attaches a block that says so. The same call
// is one of the same tool with the same arguments, widening and description
// aside; other calls may lie between. A success starts anew, a cancellation
// counts for nothing. A session remembers the last 256 calls that failed, also
// when it is resumed.
func Reminder() Post {
	return func(_ context.Context, call Call, result Result) (Amendment, error) {
		if call.Session == nil || result.Error == nil || inconclusive(result.Error.Code) {
			return Amendment{}, nil
		}
		n := call.Session.failuresBefore(call) + 1
		if n < reminded {
			return Amendment{}, nil
		}
		text := fmt.Sprintf("[reminder: this exact call has now failed %d times in a row; do not repeat it, change the arguments or the approach]", n)
		return Amendment{Context: []Content{Text(text)}}, nil
	}
}

func (s *Session) failuresBefore(call Call) int {
	key := keyOf(call.Tool, call.Args)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streaks.counts[key].failures
}

// maxStreaks is how many calls that failed are remembered.
const maxStreaks = 256

// streaks are the calls that failed the last time they were made.
type streaks struct {
	counts map[accessKey]streak
	clock  int
}

type streak struct {
	failures int
	last     int // by the clock
}

// concerns reports whether the end of a call with this code changes anything.
func (s *streaks) concerns(code Code) bool {
	if code == "" {
		return len(s.counts) > 0
	}
	return !inconclusive(code)
}

func (s *streaks) saw(key accessKey, code Code) {
	switch {
	case code == "":
		delete(s.counts, key)
	case !inconclusive(code):
		s.failed(key)
	}
}

func (s *streaks) failed(key accessKey) {
	if s.counts == nil {
		s.counts = map[accessKey]streak{}
	}
	s.clock++
	s.counts[key] = streak{failures: s.counts[key].failures + 1, last: s.clock}
	if len(s.counts) > maxStreaks {
		s.forget()
	}
}

// forget drops the call that failed longest ago.
func (s *streaks) forget() {
	var oldest accessKey
	at := s.clock + 1
	for key, c := range s.counts {
		if c.last < at {
			oldest, at = key, c.last
		}
	}
	delete(s.counts, oldest)
}

// inconclusive codes say nothing about whether the call would fail again.
func inconclusive(code Code) bool {
	switch code {
	case Aborted, AbortedBeforeDispatch, ApprovalCancelled, LogFailed, ToolNotStarted, ToolOutcomeUnknown:
		return true
	}
	return false
}
