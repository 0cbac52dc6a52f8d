package session

import (
	"bytes"
	"encoding/json"
	"regexp"
)

// refsIn returns what may be names of blobs in the data of an event: objects
// with the members sha256 and bytes alone, at any depth.
func refsIn(data []byte) []Ref {
	if !bytes.Contains(data, []byte(`"sha256"`)) {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) != nil {
		return nil
	}
	return appendRefs(nil, value)
}

func appendRefs(refs []Ref, value any) []Ref {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			refs = appendRefs(refs, item)
		}
	case map[string]any:
		if ref, ok := asRef(v); ok {
			return append(refs, ref)
		}
		for _, item := range v {
			refs = appendRefs(refs, item)
		}
	}
	return refs
}

var refHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

func asRef(members map[string]any) (Ref, bool) {
	hash, _ := members["sha256"].(string)
	number, _ := members["bytes"].(json.Number)
	size, err := number.Int64()
	return Ref{SHA256: hash, Bytes: size}, len(members) == 2 && err == nil && refHash.MatchString(hash)
}
