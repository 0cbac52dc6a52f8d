package runtime

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja"
)

const maxTableRows = 1000

// grid is a table: the first column is the row's key.
type grid struct {
	columns []string
	rows    [][]string
}

// table prints rows and columns where the argument has them, else as log does.
func (c *console) table(call goja.FunctionCall) {
	o, ok := call.Argument(0).(*goja.Object)
	if !ok {
		c.emit("log", c.inspector().format(call.Arguments))
		return
	}
	var wanted []string
	if list, ok := call.Argument(1).(*goja.Object); ok && list.ClassName() == "Array" {
		for _, key := range list.Keys() {
			wanted = append(wanted, list.Get(key).String())
		}
	}
	c.emit("log", c.grid(o, wanted).String())
}

// grid collects the cells of o's members.
func (c *console) grid(o *goja.Object, wanted []string) grid {
	const values = "Values"
	index := "(index)"
	columns, plain := slices.Clone(wanted), false
	keys := o.Keys()
	cells := make([]map[string]string, 0, len(keys))
	for _, key := range keys[:min(len(keys), maxTableRows)] {
		c.check()
		cell := map[string]string{index: key}
		row, ok := o.Get(key).(*goja.Object)
		if !ok || isFunctionClass(classOf(row)) {
			cell[values], plain = c.cell(o.Get(key)), true
		} else {
			for _, name := range row.Keys() {
				if wanted == nil && !slices.Contains(columns, name) && len(columns) < 100 {
					columns = append(columns, name)
				}
				if slices.Contains(columns, name) {
					cell[name] = c.cell(row.Get(name))
				}
			}
		}
		cells = append(cells, cell)
	}
	columns = append([]string{index}, columns...)
	if plain {
		columns = append(columns, values)
	}
	g := grid{columns: columns}
	for _, cell := range cells {
		row := make([]string, len(columns))
		for i, name := range columns {
			row[i] = cell[name]
		}
		g.rows = append(g.rows, row)
	}
	return g
}

func (c *console) cell(v goja.Value) string {
	i := c.inspector()
	i.depth = 0
	return i.text(v)
}

func (g grid) String() string {
	widths := make([]int, len(g.columns))
	for _, row := range append([][]string{g.columns}, g.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell)+2)
		}
	}
	var b strings.Builder
	rule := func(left, cross, right string) {
		b.WriteString(left)
		for i, n := range widths {
			if i > 0 {
				b.WriteString(cross)
			}
			b.WriteString(strings.Repeat("─", n))
		}
		b.WriteString(right)
	}
	line := func(row []string) {
		b.WriteString("\n│")
		for i, cell := range row {
			b.WriteString(" " + cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)-1) + "│")
		}
		b.WriteString("\n")
	}
	rule("┌", "┬", "┐")
	line(g.columns)
	rule("├", "┼", "┤")
	for i, row := range g.rows {
		if i > 0 {
			line(row)
			continue
		}
		line(row)
	}
	out := strings.ReplaceAll(b.String(), "\n\n", "\n")
	b.Reset()
	b.WriteString(strings.TrimRight(out, "\n") + "\n")
	rule("└", "┴", "┘")
	return b.String()
}
