package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Mode says which file effects are allowed. Only writes are governed: reading
// is free, and the network and the view of other processes are outside these
// words.
type Mode uint8

// The sandbox modes, from narrow to wide.
const (
	ReadOnly Mode = iota
	WorkspaceWrite
	DangerFullAccess
)

var modeWords = []string{"read-only", "workspace-write", "danger-full-access"}

// ParseMode returns the mode that word names.
func ParseMode(word string) (Mode, error) { return parseWord[Mode]("sandbox mode", modeWords, word) }

func (m Mode) String() string               { return wordOf(modeWords, m) }
func (m Mode) MarshalText() ([]byte, error) { return marshalWord("sandbox mode", modeWords, m) }

// UnmarshalText accepts the words of ParseMode.
func (m *Mode) UnmarshalText(b []byte) (err error) {
	*m, err = ParseMode(string(b))
	return err
}

// Approval is the approval policy: whether questions are put to anyone.
type Approval uint8

// Never answers each question with a rejection before any answerer is called.
const (
	Never Approval = iota
	Ask
)

var approvalWords = []string{"never", "ask"}

// ParseApproval returns the approval policy that word names.
func ParseApproval(word string) (Approval, error) {
	return parseWord[Approval]("approval policy", approvalWords, word)
}

func (a Approval) String() string { return wordOf(approvalWords, a) }
func (a Approval) MarshalText() ([]byte, error) {
	return marshalWord("approval policy", approvalWords, a)
}

// UnmarshalText accepts the words of ParseApproval.
func (a *Approval) UnmarshalText(b []byte) (err error) {
	*a, err = ParseApproval(string(b))
	return err
}

// Outcome is the answer to one question. Only AllowedOnce grants, and it
// grants one call.
type Outcome uint8

// The outcomes of a question.
const (
	Unavailable Outcome = iota // nobody could answer
	AllowedOnce
	Rejected
	Cancelled // the question was withdrawn, or its deadline passed
)

var outcomeWords = []string{"unavailable", "allowed-once", "rejected", "cancelled"}

func (o Outcome) String() string { return wordOf(outcomeWords, o) }
func (o Outcome) MarshalText() ([]byte, error) {
	return marshalWord("approval outcome", outcomeWords, o)
}

// UnmarshalText accepts exactly the outcome words.
func (o *Outcome) UnmarshalText(b []byte) (err error) {
	*o, err = parseWord[Outcome]("approval outcome", outcomeWords, string(b))
	return err
}

// WordError says that a value is outside the vocabulary of its knob.
type WordError struct {
	Knob  string
	Word  string
	Words []string // the vocabulary
}

func (e *WordError) Error() string {
	return fmt.Sprintf("%s %q: want one of %s", e.Knob, e.Word, strings.Join(e.Words, ", "))
}

func parseWord[T ~uint8](knob string, words []string, word string) (T, error) {
	i := slices.Index(words, word)
	if i < 0 {
		return 0, &WordError{Knob: knob, Word: word, Words: words}
	}
	return T(i), nil
}

func wordOf[T ~uint8](words []string, v T) string {
	if int(v) < len(words) {
		return words[v]
	}
	return fmt.Sprintf("invalid(%d)", v)
}

func marshalWord[T ~uint8](knob string, words []string, v T) ([]byte, error) {
	if int(v) >= len(words) {
		return nil, &WordError{Knob: knob, Word: wordOf(words, v), Words: words}
	}
	return []byte(words[v]), nil
}
