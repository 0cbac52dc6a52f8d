package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// searcher searches one file after another with the same buffers.
type searcher struct {
	*grepping
	blocks  blockReader
	scratch []byte
}

func newSearcher(g *grepping) *searcher {
	return &searcher{grepping: g, blocks: blockReader{buf: make([]byte, blockSize)}}
}

// file searches a file of the walk.
func (s *searcher) file(ctx context.Context, path, rel string) {
	if ctx.Err() != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking|noFollow, 0)
	if err != nil {
		s.unreadable.Add(1)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		return // it was exchanged since it was listed
	}
	if err == nil {
		err = s.search(ctx, f, rel)
	}
	if err != nil {
		s.unreadable.Add(1)
	}
}

// search keeps the matches in f.
func (s *searcher) search(ctx context.Context, f *os.File, rel string) error {
	found := fileMatches{rel: rel}
	total, err := s.matches(ctx, f, &found)
	if errors.Is(err, errBinary) {
		s.binary.Add(1)
		return nil
	}
	if err != nil {
		return err
	}
	s.searched.Add(1)
	s.total.Add(total)
	if len(found.matches) == 0 {
		return nil
	}
	if s.context > 0 {
		if err := s.addContext(ctx, f, &found); err != nil {
			return err
		}
	}
	s.keep(found)
	return nil
}

// matches fills found, and counts also what it does not keep.
func (s *searcher) matches(ctx context.Context, f *os.File, found *fileMatches) (total int64, err error) {
	s.blocks.reset(f)
	for number := 1; ; {
		block, err := s.blocks.next(ctx)
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return 0, err
		}
		counted := 0
		s.scratch = s.matcher.scan(block, s.scratch, func(l lineIn) bool {
			total++
			if !found.more {
				number += bytes.Count(block[counted:l.start], newline)
				counted = l.start
				s.add(found, block[l.start:l.end], l.match, number)
			}
			return true
		})
		number += bytes.Count(block[counted:], newline)
	}
}

var newline = []byte{'\n'}

// add keeps one match.
func (s *searcher) add(found *fileMatches, line []byte, match []int, number int) {
	m := grepMatch{LineNumber: number, Before: []string{}, After: []string{}}
	m.Path, m.PathBytes = nameText(found.rel)
	m.Line, m.Clipped = clipAround(line, match)
	size := m.size()
	if found.more = found.size+size > keepLimit/2; found.more {
		return
	}
	found.size += size
	found.matches = append(found.matches, m)
}

// addContext reads f once more and gives the matches the lines around them.
func (s *searcher) addContext(ctx context.Context, f *os.File, found *fileMatches) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	s.blocks.reset(f)
	around := surroundings{matches: found.matches, context: s.context}
	for number := 1; ; {
		block, err := s.blocks.next(ctx)
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			return err
		}
		for len(block) > 0 {
			line, rest, ended := bytes.Cut(block, newline)
			if ended {
				line = bytes.TrimSuffix(line, []byte{'\r'})
			}
			if around.add(number, line); around.done() || found.size > keepLimit/2 {
				return nil
			}
			found.size += around.size
			block, number = rest, number+1
		}
	}
}

// surroundings hands lines that come by in order to the matches near them.
type surroundings struct {
	matches []grepMatch
	context int
	first   int // of the matches that can still get a line
	size    int // of what the last line added
}

func (a *surroundings) done() bool { return a.first == len(a.matches) }

func (a *surroundings) add(number int, line []byte) {
	a.size = 0
	for !a.done() && a.matches[a.first].LineNumber+a.context < number {
		a.first++
	}
	text := ""
	for i := a.first; i < len(a.matches) && a.matches[i].LineNumber-a.context <= number; i++ {
		m := &a.matches[i]
		if m.LineNumber == number {
			continue
		}
		if a.size == 0 {
			text, _ = clipAround(line, []int{0, 0})
		}
		a.size += encodedSize(text) + 3
		if m.LineNumber > number {
			m.Before = append(m.Before, text)
		} else {
			m.After = append(m.After, text)
		}
	}
}

// lineLimit is the longest line that is given, in bytes.
const lineLimit = 2000

// clipAround cuts a long line to what surrounds the match.
func clipAround(line []byte, match []int) (text string, clipped bool) {
	from, to := 0, len(line)
	if to > lineLimit {
		clipped = true
		from = max(0, min((match[0]+min(match[1], match[0]+lineLimit)-lineLimit)/2, len(line)-lineLimit))
		to = from + lineLimit
		for from < to && !utf8.RuneStart(line[from]) {
			from++
		}
		for to > from && to < len(line) && !utf8.RuneStart(line[to]) {
			to--
		}
	}
	return strings.ToValidUTF8(string(line[from:to]), "\uFFFD"), clipped
}
