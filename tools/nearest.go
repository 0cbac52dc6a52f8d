package tools

import (
	"iter"
	"slices"
	"strings"
)

// maxGuessed is how long a name may be to be taken for another.
const maxGuessed = 128

// nearest returns the known name that a reader would take name for, or "".
func nearest(name string, known iter.Seq[string]) string {
	if len(name) > maxGuessed {
		return ""
	}
	best, distance := "", max(2, len(name)/3)+1
	for _, candidate := range slices.Sorted(known) {
		d := editDistance(strings.ToLower(name), strings.ToLower(candidate))
		if strings.HasPrefix(candidate, name+"_") || strings.HasSuffix(candidate, "_"+name) {
			d = min(d, 1)
		}
		if d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

// editDistance counts the insertions, deletions and replacements of bytes that
// turn a into b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
