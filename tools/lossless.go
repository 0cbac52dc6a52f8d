package tools

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// lossless says what of a JSON text would be lost on the way to a body: members
// that are given twice, text that no string can hold, numbers beyond all. Readers
// differ in what they make of those, so what was checked and shown might not be
// what runs. raw must be valid JSON.
func lossless(raw json.RawMessage) error {
	s := lossScanner{raw: raw}
	for s.at < len(raw) {
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}

// lossScanner walks over the tokens of a valid JSON text.
type lossScanner struct {
	raw   []byte
	at    int
	above []map[string]bool // the members so far of each open object; nil for a list
	name  bool              // the next string is the name of a member
}

func (s *lossScanner) step() error {
	switch c := s.raw[s.at]; c {
	case '{':
		s.above, s.name = append(s.above, map[string]bool{}), true
	case '[':
		s.above, s.name = append(s.above, nil), false
	case '}', ']':
		s.above, s.name = s.above[:len(s.above)-1], false
	case ',':
		s.name = s.above[len(s.above)-1] != nil
	case '"':
		return s.quoted()
	default:
		if c == '-' || '0' <= c && c <= '9' {
			return s.number()
		}
	}
	s.at++
	return nil
}

// quoted reads a string: the name of a member, or a value.
func (s *lossScanner) quoted() error {
	start, escaped := s.at, false
	for s.at++; s.raw[s.at] != '"'; s.at++ {
		if s.raw[s.at] == '\\' {
			escaped = true
			s.at++
		}
	}
	s.at++
	text := s.raw[start:s.at]
	if escaped {
		if err := pairedSurrogates(text); err != nil {
			return err
		}
	}
	if !s.name {
		return nil
	}
	s.name = false
	var name string
	if err := json.Unmarshal(text, &name); err != nil {
		return err
	}
	members := s.above[len(s.above)-1]
	if members[name] {
		return fmt.Errorf("the member %.100q is given twice in one object", name)
	}
	members[name] = true
	return nil
}

// pairedSurrogates refuses an escape of half a character.
func pairedSurrogates(text []byte) error {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		i++
		r := escapedRune(text[i:])
		if !utf16.IsSurrogate(r) {
			continue
		}
		const escape = len(`uXXXX`)
		i += escape
		if i+1 >= len(text) || text[i] != '\\' || utf16.DecodeRune(r, escapedRune(text[i+1:])) == utf8.RuneError {
			return fmt.Errorf("the escape \\u%04x is half a character, which no text can hold", r)
		}
		i += escape
	}
	return nil
}

// escapedRune is the code unit of an escape uXXXX, 0 for another one.
func escapedRune(text []byte) rune {
	if len(text) < len(`uXXXX`) || text[0] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(text[1:5]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

func (s *lossScanner) number() error {
	start := s.at
	for s.at < len(s.raw) && isNumberByte(s.raw[s.at]) {
		s.at++
	}
	text := string(s.raw[start:s.at])
	if f, err := strconv.ParseFloat(text, 64); err != nil || math.IsInf(f, 0) {
		return fmt.Errorf("the number %.40s is too large for any reader", text)
	}
	return nil
}

func isNumberByte(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}
