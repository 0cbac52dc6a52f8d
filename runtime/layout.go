package runtime

import (
	"math"
	"strconv"
	"strings"

	"github.com/dop251/goja"
)

const (
	// compactLevels is how many levels of objects may share a line.
	compactLevels = 3
	// ungrouped is the most items of an array that are not put in columns.
	ungrouped = 6
	// maxInspected bounds the text of one inspection.
	maxInspected = 16 << 20
)

// wrap puts entries on one line where Node would, else each on its own. array
// is the array that they are the items of, or nil.
func (i *inspector) wrap(prefix, open, end string, entries []string, array *goja.Object, level, indent int) string {
	count := len(entries)
	if array != nil && count > ungrouped {
		entries = i.columns(entries, array, indent)
	}
	if i.deepest-level < compactLevels && count == len(entries) && fits(entries, count+indent+width(prefix)+len(open)+10) {
		return prefix + open + " " + strings.Join(entries, ", ") + " " + end
	}
	for _, e := range entries {
		i.size += len(e) + indent
	}
	if i.size > maxInspected {
		return prefix + open + " ... " + end
	}
	pad := "\n" + strings.Repeat(" ", indent)
	return prefix + open + pad + "  " + strings.Join(entries, ","+pad+"  ") + pad + end
}

func fits(entries []string, start int) bool {
	total := len(entries) + start
	if total+len(entries) > breakLength {
		return false
	}
	for _, e := range entries {
		if total += width(e); total > breakLength || strings.Contains(e, "\n") {
			return false
		}
	}
	return true
}

// width is the length of s as JavaScript counts it.
func width(s string) int { return utf16Length(s) }

// columns arranges many short items in columns. The arithmetic is that of
// Node's groupArrayElements: it aims at a square, a character being 2.5 times
// as high as wide.
func (i *inspector) columns(entries []string, array *goja.Object, indent int) []string {
	const separator = 2
	count := len(entries)
	if count > maxInspectItems {
		count--
	}
	total, longest := 0, 0
	widths := make([]int, count)
	for n := range widths {
		widths[n] = width(entries[n])
		total += widths[n] + separator
		longest = max(longest, widths[n])
	}
	most := longest + separator
	if most*3+indent >= breakLength || float64(total)/float64(most) <= 5 && longest > 6 {
		return entries
	}
	bias := math.Sqrt(float64(most) - float64(total)/float64(len(entries)))
	biased := math.Max(float64(most)-3-bias, 1)
	square := int(math.Round(math.Sqrt(2.5*biased*float64(count)) / biased))
	columns := min(square, (breakLength-indent)/most, compactLevels*4, 15)
	if columns <= 1 {
		return entries
	}
	return rowsOf(entries, widths, columns, i.allNumbers(array, len(entries)))
}

// rowsOf joins entries to rows. Numbers are aligned to the right.
func rowsOf(entries []string, widths []int, columns int, right bool) []string {
	const separator = 2
	column := make([]int, columns)
	for n, w := range widths {
		column[n%columns] = max(column[n%columns], w+separator)
	}
	var rows []string
	for from := 0; from < len(widths); from += columns {
		last := min(from+columns, len(widths)) - 1
		var b strings.Builder
		for n := from; n < last; n++ {
			pad := strings.Repeat(" ", column[n-from]-widths[n]-separator)
			if right {
				b.WriteString(pad + entries[n] + ", ")
			} else {
				b.WriteString(entries[n] + ", " + pad)
			}
		}
		if right {
			b.WriteString(strings.Repeat(" ", column[last-from]-separator-widths[last]))
		}
		b.WriteString(entries[last])
		rows = append(rows, b.String())
	}
	return append(rows, entries[len(widths):]...)
}

// allNumbers reports whether the first n items are numbers.
func (i *inspector) allNumbers(array *goja.Object, n int) bool {
	for at := range n {
		v := i.own(array, strconv.Itoa(at))
		if v == nil || !goja.IsNumber(v) && !goja.IsBigInt(v) {
			return false
		}
	}
	return true
}
