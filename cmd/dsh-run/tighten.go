package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dsh-run/dsh"
	"github.com/dsh-run/dsh/policy"
)

// A workspace's configuration comes with the files in it, which others may
// have written. It is followed where it allows less than what the command line
// and the user's file allow, and nowhere else.

// tightening narrows options and remembers what a person should know of it.
type tightening struct {
	file    string
	wish    config
	flags   *sessionFlags
	options *dsh.Options
	remarks []string
}

// limits narrows everything but the two knobs. The error is for keys that can
// only widen.
func (t *tightening) limits() error {
	c, o := t.wish, t.options
	if keys := c.widening(); len(keys) > 0 {
		return usagef("%s: the file of a workspace can only tighten, it cannot set %s", t.file, strings.Join(keys, ", "))
	}
	if c.Preset != nil {
		if _, err := t.flags.presets.Parse(*c.Preset); err != nil {
			return usagef("%s: %w", t.file, err)
		}
	}
	demand(t, "require-full", &o.Local.RequireFull, c.RequireFull)
	demand(t, "require_denial", &o.RequireDenial, c.RequireDenial)
	limits := o.Limits.WithDefaults()
	lower(t, "compute", &o.Limits.Compute, limits.Compute, c.Compute)
	lower(t, "max-calls", &o.Limits.Calls, limits.Calls, c.MaxCalls)
	lower(t, "max-output", &o.Limits.OutputBytes, limits.OutputBytes, number[int](c.MaxOutput))
	lower(t, "memory", &o.Limits.Memory, limits.Memory, number[int64](c.Memory))
	t.timeout(c.Timeout)
	t.isolation(c.Isolation)
	t.tools(c.Tools)
	o.Redact = append(o.Redact, c.Redact...)
	return nil
}

// knobs narrows both knobs.
func (t *tightening) knobs(mode *policy.Mode, approval *policy.Approval) {
	c := t.wish
	if c.Preset != nil {
		p, _ := t.flags.presets.Parse(*c.Preset)
		narrow(t, "preset "+p.Name+", sandbox", mode, &p.Mode)
		narrow(t, "preset "+p.Name+", approve", approval, &p.Approval)
	}
	narrow(t, "sandbox", mode, c.Sandbox)
	narrow(t, "approve", approval, c.Approve)
}

// widening names what the file says that is the user's alone to say.
func (c config) widening() (keys []string) {
	for _, key := range []struct {
		name string
		said bool
	}{
		{"approve-via", c.ApproveVia != nil}, {"log", c.Log != nil},
		{"presets", c.Presets != nil}, {"backends", c.Backends != nil}, {"runner", c.Runner != nil}, {"quiet", c.Quiet != nil},
	} {
		if key.said {
			keys = append(keys, key.name)
		}
	}
	return keys
}

func (t *tightening) remark(key, value, why string) {
	t.remarks = append(t.remarks, fmt.Sprintf("%s: %s: %s %s", t.file, key, value, why))
}

const (
	followed    = "applies"
	notFollowed = "is not followed: it allows more than the rest, and the file of a workspace can only tighten"
)

// narrow takes the narrower of two words of one knob.
func narrow[T interface {
	~uint8
	fmt.Stringer
}](t *tightening, key string, knob, wish *T) {
	switch {
	case wish == nil || *wish == *knob:
	case *wish < *knob:
		*knob = *wish
		t.remark(key, (*wish).String(), followed)
	default:
		t.remark(key, (*wish).String(), notFollowed)
	}
}

// demand takes a yes.
func demand(t *tightening, key string, flag, wish *bool) {
	switch {
	case wish == nil || *wish == *flag:
	case *wish:
		*flag = true
		t.remark(key, "true", followed)
	default:
		t.remark(key, "false", notFollowed)
	}
}

// lower takes the smaller of two limits; now is the limit with its default.
func lower[T ~int | ~int64](t *tightening, key string, limit *T, now T, wish *T) {
	switch {
	case wish == nil || *wish == now:
	case *wish < now:
		*limit = *wish
		t.remark(key, fmt.Sprint(*wish), followed)
	default:
		t.remark(key, fmt.Sprint(*wish), notFollowed)
	}
}

func number[T ~int | ~int64](s *size) *T {
	if s == nil {
		return nil
	}
	n := T(*s)
	return &n
}

func (t *tightening) timeout(wish *time.Duration) {
	if wish == nil {
		return
	}
	if t.flags.timeout > 0 && t.flags.timeout <= *wish {
		return
	}
	t.flags.timeout, t.options.Limits.Wall = *wish, *wish
	t.remark("timeout", wish.String(), followed)
}

func (t *tightening) isolation(wish *string) {
	switch {
	case wish == nil || *wish == t.flags.isolation:
	case *wish == isolationProcess:
		t.flags.isolation, t.options.Engine = isolationProcess, nil
		t.remark("isolation", *wish, followed)
	default:
		t.remark("isolation", *wish, notFollowed)
	}
}

// tools keeps the tools that both name.
func (t *tightening) tools(names []string) {
	if names == nil {
		return
	}
	if t.options.Tools == nil {
		t.options.Tools = names
	} else {
		t.options.Tools = slices.DeleteFunc(slices.Clone(t.options.Tools), func(n string) bool { return !slices.Contains(names, n) })
	}
	t.remark("tools", strings.Join(names, ","), followed)
}
