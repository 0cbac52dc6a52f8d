package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
)

// earlierDenial returns the id of the last call that wanted the same access and
// that the sandbox denied; empty: there is none.
func (s *Session) earlierDenial(tool string, args json.RawMessage) string {
	key := keyOf(tool, args)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.denials[key]
}

// accessKey identifies what a call wants to do.
type accessKey [sha256.Size]byte

// keyOf leaves out what does not change the access, members that are null, and
// the order of members.
func keyOf(tool string, args json.RawMessage) accessKey {
	var members map[string]any
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	if dec.Decode(&members) == nil {
		for name, value := range members {
			if value == nil || besideAccess(tool, name) {
				delete(members, name)
			}
		}
		args, _ = json.Marshal(members)
	}
	return sha256.Sum256(append([]byte(tool+"\x00"), args...))
}

// besideAccess says that an argument does not change what the call accesses.
func besideAccess(tool, name string) bool {
	switch name {
	case "sandbox_permissions", "justification", "description":
		return true
	case "timeout_ms":
		return tool == "bash"
	}
	return false
}
