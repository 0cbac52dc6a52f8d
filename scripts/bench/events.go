package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/dsh-run/dsh/session"
)

// eventsPerCall is how many events a root call with a typical program writes.
const eventsPerCall = 42

// eventsPerUnit is how many events one measured unit appends.
const eventsPerUnit = 10 * eventsPerCall

// events measures one appended event, the bare write first; with a sync at the
// end of each call it includes its share of that.
func events(_ context.Context, base string) (group, error) {
	log, err := session.Create(filepath.Join(base, "events.jsonl"), base, nil)
	if err != nil {
		return group{}, err
	}
	small := map[string]string{"call_id": "c1:1", "text": strings.Repeat("x", 200)}
	return group{
		name: "one event of 300 bytes (1 s / this = events per second)", share: 0.2,
		rows: []row{
			{"appended", perEvent(log, small, 0)},
			{"… with a sync after each 42, as a call of 20 sub-calls", perEvent(log, small, eventsPerCall)},
			{"… with a sync after each", perEvent(log, small, 1)},
		},
		close: func() { log.Close() },
	}, nil
}

// perEvent appends events and syncs after each every-th; 0: never.
func perEvent(log *session.Log, data any, every int) func(context.Context) (time.Duration, error) {
	return func(context.Context) (time.Duration, error) {
		n := eventsPerUnit
		if every == 1 {
			n = 10
		}
		begun := time.Now()
		for i := range n {
			if _, err := log.Append(session.ProgramLog, data); err != nil {
				return 0, err
			}
			if every > 0 && (i+1)%every == 0 {
				if err := log.Sync(); err != nil {
					return 0, err
				}
			}
		}
		return time.Since(begun) / time.Duration(n), nil
	}
}
