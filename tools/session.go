package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/dsh-run/dsh/policy"
)

// Session is a session as the pipeline needs it: its permissions, its log, and
// what follows from the calls so far. It is safe for concurrent use.
type Session struct {
	*policy.Session

	mu      sync.Mutex
	roots   int                  // number of the last root call
	denials map[accessKey]string // what was denied → id of the last such call
	streaks streaks
}

// NewSession folds what the pipeline needs from the session's log. It is for a
// session that was just created; one whose log was opened again needs
// [ResumeSession].
func NewSession(permissions *policy.Session) (*Session, error) {
	s, _, err := fold(permissions)
	return s, err
}

func (s *Session) sawRoot(id string) {
	if n, err := strconv.Atoi(strings.TrimPrefix(id, "c")); err == nil {
		s.roots = max(s.roots, n)
	}
}

// sawEnd records what follows from the end of a call; code is empty for a
// success.
func (s *Session) sawEnd(id, tool string, args json.RawMessage, code Code, by *policy.Confinement) {
	denied := by != nil && by.Denied
	s.mu.Lock()
	defer s.mu.Unlock()
	if !denied && !s.streaks.concerns(code) {
		return
	}
	key := keyOf(tool, args)
	s.streaks.saw(key, code)
	if denied {
		s.denials[key] = id
	}
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
	key := keyOf(tool, args)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.denials[key]
}

// accessKey identifies what a call wants to do.
type accessKey [sha256.Size]byte

// keyOf leaves out what does not change the access: the widening, the
// description, members that are null, and the order of members.
func keyOf(tool string, args json.RawMessage) accessKey {
	var members map[string]any
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	if dec.Decode(&members) == nil {
		for name, value := range members {
			if value == nil || name == "sandbox_permissions" || name == "justification" || name == "description" {
				delete(members, name)
			}
		}
		args, _ = json.Marshal(members)
	}
	return sha256.Sum256(append([]byte(tool+"\x00"), args...))
}
