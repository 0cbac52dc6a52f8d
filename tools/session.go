package tools

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
)

// Session is a session as the pipeline needs it: its permissions, its log, and
// what follows from the calls so far. It is safe for concurrent use.
type Session struct {
	*policy.Session

	mu      sync.Mutex
	roots   int                          // number of the last root call
	denials map[[sha256.Size]byte]string // what was denied → id of the last such call
}

// NewSession folds what the pipeline needs from the session's log.
func NewSession(permissions *policy.Session) (*Session, error) {
	s := &Session{Session: permissions, denials: map[[sha256.Size]byte]string{}}
	r := replay{session: s, open: map[string]callEvent{}}
	if err := permissions.Log().Replay(r.apply); err != nil {
		return nil, err
	}
	return s, nil
}

// replay rebuilds a session's state from its events.
type replay struct {
	session *Session
	open    map[string]callEvent
}

func (r replay) apply(e session.Event) {
	switch e.Type {
	case session.ToolCall:
		var call callEvent
		if json.Unmarshal(e.Data, &call) == nil {
			r.open[call.CallID] = call
			r.session.sawRoot(call.CallID)
		}
	case session.ToolResult:
		var result resultEvent
		if json.Unmarshal(e.Data, &result) != nil {
			return
		}
		if call, ok := r.open[result.CallID]; ok && result.Confinement != nil && result.Confinement.Denied {
			r.session.sawDenial(call.CallID, call.Tool, call.Args)
		}
		delete(r.open, result.CallID)
	}
}

func (s *Session) sawRoot(id string) {
	if n, err := strconv.Atoi(strings.TrimPrefix(id, "c")); err == nil {
		s.roots = max(s.roots, n)
	}
}

func (s *Session) sawDenial(id, tool string, args json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denials[accessKey(tool, args)] = id
}

// nextRootID reserves the id of the next root call.
func (s *Session) nextRootID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.roots++
	return "c" + strconv.Itoa(s.roots)
}

// earlierDenial returns the id of the last call of the same tool with the same
// arguments, the widening ones aside, that the sandbox denied.
func (s *Session) earlierDenial(tool string, args json.RawMessage) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.denials[accessKey(tool, args)]
}

// accessKey identifies what a call wants to do.
func accessKey(tool string, args json.RawMessage) [sha256.Size]byte {
	var members map[string]any
	if json.Unmarshal(args, &members) == nil {
		delete(members, "sandbox_permissions")
		delete(members, "justification")
		delete(members, "description")
		args, _ = json.Marshal(members)
	}
	return sha256.Sum256(append([]byte(tool+"\x00"), args...))
}
