package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// FilePair returns the answerer that a script is: questions are appended to
// DIR/questions and answers read from DIR/answers, one JSON object per line.
//
// dir must exist, belong to this user and be writable by nobody else; it must
// lie outside of what calls may change, or they could answer for themselves.
// The files are regular ones, made where they are missing, or named pipes that
// the user made; never links. On Windows they are regular files. They are open
// for as long as the answerer is used, by one process at a time: answers are
// appended, and a file that is replaced or cut meanwhile is an error. The error
// is a *FilePairError.
//
// A question has the members session, id, call_id, tool, args, caller (kind,
// line, column, program, source), reason, mode, to, confined, denied_call,
// preview and asked_at (RFC 3339). An answer has session, id, outcome
// (allowed-once, rejected or cancelled) and, if it likes, why; other members do
// not matter. It counts when session and id are those of the open question and
// it was written after the question. One for another question is skipped. A
// line that cannot be read, is longer than 64 KiB or has another outcome ends
// the open question as unavailable.
func FilePair(dir string) (Answerer, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = checkPairDir(dir)
	}
	if err != nil {
		return Answerer{}, err
	}
	p := &filePair{turn: make(chan struct{}, 1)}
	if p.questions, err = openPairFile(filepath.Join(dir, "questions")); err != nil {
		return Answerer{}, err
	}
	if p.answers, err = openPairFile(filepath.Join(dir, "answers")); err != nil {
		return Answerer{}, errors.Join(err, p.questions.file.Close())
	}
	return Answerer{Name: "file-pair", reply: p.reply}, nil
}

// FilePairError says why a directory cannot carry questions and answers, or
// what went wrong when it did.
type FilePairError struct {
	Path   string // of the directory or of one of its files
	Reason string
}

func (e *FilePairError) Error() string {
	return fmt.Sprintf("approvals through files: %s: %s", e.Path, e.Reason)
}

// pairError is err without the path that it repeats.
func pairError(path string, err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		err = p.Err
	}
	return &FilePairError{path, err.Error()}
}

func checkPairDir(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return pairError(dir, err)
	case !info.IsDir():
		return &FilePairError{dir, "it is not a directory"}
	}
	if reason := notOursAlone(info); reason != "" {
		return &FilePairError{dir, reason}
	}
	return nil
}

// filePair puts one question at a time.
type filePair struct {
	turn               chan struct{}
	questions, answers *pairFile
	torn               bool // the last question was written in part
}

func (p *filePair) reply(ctx context.Context, q Question) answer {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return answer{err: ctx.Err()}
	}
	lines, err := p.answers.fresh(ctx)
	if err == nil {
		err = p.put(ctx, q)
	}
	if err != nil {
		return answer{err: err}
	}
	return lines.answerTo(ctx, q)
}

// pairQuestion is one line of the questions.
type pairQuestion struct {
	Session string          `json:"session"`
	ID      string          `json:"id"`
	CallID  string          `json:"call_id"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Caller  pairCaller      `json:"caller"`
	Reason  string          `json:"reason"`
	Mode    Mode            `json:"mode"`
	To      Mode            `json:"to"`
	// Confined says whether the tool's file effects are governed by the mode.
	Confined bool      `json:"confined"`
	Denied   string    `json:"denied_call"`
	Preview  string    `json:"preview"`
	AskedAt  time.Time `json:"asked_at"`
}

type pairCaller struct {
	Kind    CallerKind `json:"kind"`
	Line    int        `json:"line"`
	Column  int        `json:"column"`
	Program string     `json:"program"`
	Source  string     `json:"source"`
}

// put writes the question. A torn line before it is ended first.
func (p *filePair) put(ctx context.Context, q Question) error {
	line, err := json.Marshal(pairQuestion{
		q.Session, q.ID, q.CallID, q.Tool, q.Args, pairCaller(q.Caller), q.Reason,
		q.Mode, q.To, q.Confined, q.Denied, q.Preview, time.Now().UTC(),
	})
	if err != nil {
		return err
	}
	if p.torn {
		line = append([]byte("\n"), line...)
	}
	written, err := p.questions.write(ctx, append(line, '\n'))
	if written > 0 {
		p.torn = err != nil
	}
	return err
}
