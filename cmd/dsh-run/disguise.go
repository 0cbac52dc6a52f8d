package main

import (
	"strings"
	"unicode"
)

// disguises says which characters look like other ones where they stand: a
// letter of another script inside of a word of ASCII letters, or in a word that
// has nothing but such letters, or punctuation that is not the ASCII sign it
// looks like. Ordinary words of other scripts stay as they are.
func disguises(glyphs []glyph) []bool {
	out := make([]bool, len(glyphs))
	words := wordsOf(glyphs)
	for i, w := range words {
		ordinary := w.foreign() && neighboursOrdinary(glyphs, words, i)
		for j := w.from; j < w.to; j++ {
			out[j] = w.disguised(glyphs[j].r, ordinary)
		}
	}
	for from := 0; from < len(glyphs); {
		to := from
		for to < len(glyphs) && glyphs[to].r != ' ' {
			to++
		}
		disguisedSigns(glyphs[from:to], out[from:to])
		from = to + 1
	}
	return out
}

// word is a run of letters, digits and combining marks.
type word struct {
	from, to int
	ascii    bool                         // has ASCII letters
	digits   bool                         // has digits
	clear    map[*unicode.RangeTable]bool // scripts with a letter like no ASCII one
	scripts  map[*unicode.RangeTable]bool
}

func wordsOf(glyphs []glyph) (all []word) {
	for i := 0; i < len(glyphs); i++ {
		if !inWord(glyphs[i].r) {
			continue
		}
		w := word{from: i, clear: map[*unicode.RangeTable]bool{}, scripts: map[*unicode.RangeTable]bool{}}
		for ; i < len(glyphs) && inWord(glyphs[i].r); i++ {
			w.add(glyphs[i].r)
		}
		w.to = i
		all = append(all, w)
	}
	return all
}

func inWord(r rune) bool {
	return r >= 0 && !isSignTwin(r) && (unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r))
}

func (w *word) add(r rune) {
	switch script := scriptOf(r); {
	case script != nil:
		w.scripts[script] = true
		if !isLetterTwin(r) {
			w.clear[script] = true
		}
	case r < unicode.MaxASCII && unicode.IsLetter(r):
		w.ascii = true
	case unicode.IsNumber(r):
		w.digits = true
	}
}

// foreign reports whether the word is of one script that is like ASCII.
func (w word) foreign() bool { return !w.ascii && !w.digits && len(w.scripts) == 1 }

func (w word) disguised(r rune, ordinary bool) bool {
	if unicode.In(r, twinTables...) {
		return true
	}
	script := scriptOf(r)
	return script != nil && !ordinary && (w.ascii || !w.clear[script])
}

// neighboursOrdinary reports whether the word i, which may be nothing but
// look-alikes, stands in a sentence of its script.
func neighboursOrdinary(glyphs []glyph, words []word, i int) bool {
	before, after := word{}, word{from: len(glyphs)}
	if i > 0 {
		before = words[i-1]
	}
	if i+1 < len(words) {
		after = words[i+1]
	}
	ordinary := func(n word) bool {
		if n.scripts == nil {
			return true
		}
		for script := range words[i].scripts {
			return n.foreign() && n.clear[script]
		}
		return false
	}
	return len(words) > 1 && ordinary(before) && ordinary(after) &&
		inSentence(glyphs[before.to:words[i].from]) && inSentence(glyphs[words[i].to:after.from])
}

// inSentence reports whether what is between two words belongs to prose.
func inSentence(gap []glyph) bool {
	for _, g := range gap {
		if !strings.ContainsRune(" ,.!?:«»—", g.r) {
			return false
		}
	}
	return true
}

// disguisedSigns looks at what stands between two spaces.
func disguisedSigns(token []glyph, out []bool) {
	ascii, other := false, false
	for i, g := range token {
		if inWord(g.r) && !out[i] {
			ascii = ascii || g.r <= unicode.MaxASCII
			other = other || g.r > unicode.MaxASCII
		}
	}
	for i, g := range token {
		switch {
		case isSignTwin(g.r):
			out[i] = ascii || !other
		case g.r > unicode.MaxASCII && (unicode.IsDigit(g.r) || unicode.In(g.r, rightToLeft...)):
			out[i] = out[i] || ascii
		}
	}
}
