package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
)

// SpillOptions of the spill step. Nil means all defaults.
type SpillOptions struct {
	// MaxInlineTokens is the largest text result that a model is given whole,
	// in tokens, each taken for 4 bytes. Default: 12500.
	MaxInlineTokens int
}

const (
	defaultInlineTokens = 12500
	bytesPerToken       = 4
)

// Spill returns the post-execute step that keeps long text results away from a
// model: the full text goes to a file of the session, and the model gets its
// head and tail and the path. Register it first, so that it sees what the
// other steps left.
//
// Results of read and of calls inside a program stay as they are, and so do
// those of calls without a session, which have no place for a file. A text
// that cannot be saved stays whole, with a warning.
func Spill(o *SpillOptions) tools.Post {
	budget := defaultInlineTokens * bytesPerToken
	if o != nil && o.MaxInlineTokens > 0 {
		budget = o.MaxInlineTokens * bytesPerToken
	}
	return func(_ context.Context, call tools.Call, result tools.Result) (tools.Amendment, error) {
		text, others := splitText(result.Content)
		if len(text) <= budget || call.Tool == "read" || call.Caller.Kind == policy.Program || call.Session == nil {
			return tools.Amendment{}, nil
		}
		path, err := spillTo(call.Session.Log().SpillDir(), call.Tool, text)
		if err != nil {
			return tools.Amendment{Context: []tools.Content{tools.Text("[this result is long, and could not be saved to a file to shorten it here: " + osReason(err) + "]")}}, nil
		}
		short := tools.Text(headAndTail(text, path, budget))
		return tools.Amendment{Content: append([]tools.Content{short}, others...)}, nil
	}
}

// splitText joins the text blocks of a content.
func splitText(content []tools.Content) (text string, others []tools.Content) {
	var texts []string
	for _, c := range content {
		if c.Type == "text" {
			texts = append(texts, c.Text)
		} else {
			others = append(others, c)
		}
	}
	return strings.Join(texts, "\n"), others
}

// spillTo writes text to a new file of dir that only its owner can read.
func spillTo(dir, tool, text string) (string, error) {
	f, err := createSpill(dir, tool)
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name()) // half a text would be taken for the whole
		return "", err
	}
	return f.Name(), nil
}

// createSpill makes a new file of dir, named after what is written to it, that
// only its owner can read.
func createSpill(dir, name string) (*os.File, error) {
	segment := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	path := filepath.Join(dir, segment+"-"+rand.Text()+".txt")
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
}

// headAndTail is the beginning and the end of text, and between them what is
// missing and where it is. It has at most budget bytes.
func headAndTail(text, path string, budget int) string {
	notice := func(out int) string {
		return fmt.Sprintf("\n[%d of %d bytes are left out here. The full text is in %s: read it with offset and limit, or grep it with path set to that file]\n", out, len(text), path)
	}
	room := budget - len(notice(len(text)))
	if room < 0 {
		return notice(len(text))[:cutBefore(notice(len(text)), budget)]
	}
	head := cutBefore(text, room*2/3)
	if i := strings.LastIndexByte(text[:head], '\n'); i > head/2 {
		head = i
	}
	tail := cutAfter(text, len(text)-(room-head))
	if i := strings.IndexByte(text[tail:], '\n'); i >= 0 && i < (len(text)-tail)/2 {
		tail += i + 1
	}
	return text[:head] + notice(tail-head) + text[tail:]
}

// cutBefore is the last position up to at that splits no character.
func cutBefore(text string, at int) int {
	for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

// cutAfter is the first position from at on that splits no character.
func cutAfter(text string, at int) int {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}
