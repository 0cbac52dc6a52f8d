package runtime

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dop251/goja"
)

// console makes the global of that name. Groups indent, counters and timers
// live as long as the run.
func (w *world) console() goja.Value {
	c := &console{world: w, counts: make(map[string]int), timers: make(map[string]time.Time)}
	o := w.vm.NewObject()
	for method, level := range map[string]string{"log": "log", "info": "info", "warn": "warn", "error": "error", "debug": "debug", "group": "log", "groupCollapsed": "log", "trace": "error", "dirxml": "log"} {
		w.method(o, method, c.printer(method, level))
	}
	for method, f := range map[string]func(goja.FunctionCall){
		"groupEnd": c.groupEnd, "dir": c.dir, "assert": c.assert, "table": c.table,
		"count": c.count, "countReset": c.countReset, "time": c.time, "timeEnd": c.timeEnd, "timeLog": c.timeLog,
		"clear": func(goja.FunctionCall) {},
	} {
		w.method(o, method, func(call goja.FunctionCall) goja.Value {
			f(call)
			return goja.Undefined()
		})
	}
	return o
}

type console struct {
	*world
	indent string
	counts map[string]int
	timers map[string]time.Time
}

func (c *console) emit(level, text string) {
	if c.indent != "" {
		text = c.indent + strings.ReplaceAll(text, "\n", "\n"+c.indent)
	}
	c.check()
	c.print(level, text)
}

func (c *console) printer(method, level string) func(goja.FunctionCall) goja.Value {
	return func(call goja.FunctionCall) goja.Value {
		text := c.inspector().format(call.Arguments)
		switch {
		case method == "trace":
			text = strings.TrimSuffix("Trace: "+text, ": ")
		case (method == "group" || method == "groupCollapsed") && len(call.Arguments) == 0:
			c.indent += "  "
			return goja.Undefined()
		}
		c.emit(level, text)
		if strings.HasPrefix(method, "group") {
			c.indent += "  "
		}
		return goja.Undefined()
	}
}

func (c *console) groupEnd(goja.FunctionCall) { c.indent = c.indent[:max(0, len(c.indent)-2)] }

// dir takes the options depth and breakLength of Node's.
func (c *console) dir(call goja.FunctionCall) {
	i := c.inspector()
	if options, ok := call.Argument(1).(*goja.Object); ok {
		switch depth := options.Get("depth"); {
		case depth == nil || goja.IsUndefined(depth):
		case goja.IsNull(depth) || depth.ToFloat() > maxInspectDepth:
			i.depth = maxInspectDepth
		default:
			i.depth = int(depth.ToInteger())
		}
	}
	c.emit("log", i.text(call.Argument(0)))
}

func (c *console) assert(call goja.FunctionCall) {
	if call.Argument(0).ToBoolean() {
		return
	}
	text := "Assertion failed"
	if rest := call.Arguments[min(1, len(call.Arguments)):]; len(rest) > 0 {
		text += ": " + c.inspector().format(rest)
	}
	c.emit("warn", text)
}

func label(call goja.FunctionCall) string {
	if v := call.Argument(0); !goja.IsUndefined(v) {
		return v.String()
	}
	return "default"
}

func (c *console) count(call goja.FunctionCall) {
	name := label(call)
	c.counts[name]++
	c.emit("log", name+": "+strconv.Itoa(c.counts[name]))
}

func (c *console) countReset(call goja.FunctionCall) { delete(c.counts, label(call)) }

func (c *console) time(call goja.FunctionCall) { c.timers[label(call)] = time.Now() }

func (c *console) timeEnd(call goja.FunctionCall) {
	c.elapsed(label(call), nil)
	delete(c.timers, label(call))
}

func (c *console) timeLog(call goja.FunctionCall) {
	c.elapsed(label(call), call.Arguments[min(1, len(call.Arguments)):])
}

func (c *console) elapsed(name string, more []goja.Value) {
	begun, running := c.timers[name]
	if !running {
		c.emit("warn", "Warning: No such label '"+name+"' for console.timeEnd()")
		return
	}
	text := name + ": " + duration(time.Since(begun))
	if len(more) > 0 {
		text += " " + c.inspector().format(more)
	}
	c.emit("log", text)
}

// duration is written as Node's console.time does.
func duration(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return fmt.Sprintf("%d:%06.3f (m:ss.mmm)", int(d.Minutes()), (d % time.Minute).Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.3fs", d.Seconds())
	}
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', -1, 64) + "ms"
}
