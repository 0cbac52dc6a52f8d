package tools

import (
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

// sawRoot keeps the number of a root call from being given again.
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

// rootID is id, or for an empty one that of the next root call.
func (s *Session) rootID(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == "" {
		id = "c" + strconv.Itoa(s.roots+1)
	}
	s.sawRoot(id)
	return id
}
