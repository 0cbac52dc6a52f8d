package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// callsPerUnit is how many calls one measured unit makes.
const callsPerUnit = 200

// road measures what the pipeline costs around a body that does nothing. Calls
// without a session are not logged; those of a program are, without reaching
// the disk one by one.
func road(_ context.Context, base string) (group, error) {
	s, err := roadSession(filepath.Join(base, "road.jsonl"))
	if err != nil {
		return group{}, err
	}
	g := group{name: "one call of a tool that does nothing, from Go", close: func() { s.Log().Close() }}
	for _, listeners := range []int{0, 5, 20} {
		g.rows = append(g.rows, row{
			fmt.Sprintf("not logged, %d listeners", listeners),
			perUnit(roadWith(listeners), tools.Request{ID: "x"}),
		})
	}
	parent := roadParent(s)
	for _, listeners := range []int{0, 5, 20} {
		g.rows = append(g.rows, row{
			fmt.Sprintf("logged, %d listeners", listeners),
			perUnit(roadWith(listeners), tools.Request{ID: "c1:1", Parent: parent}),
		})
	}
	return g, nil
}

func roadSession(path string) (*tools.Session, error) {
	log, err := session.Create(path, filepath.Dir(path), nil)
	if err != nil {
		return nil, err
	}
	permissions, err := policy.Begin(log, policy.ReadOnly, policy.Never, "bench", nil)
	if err != nil {
		return nil, err
	}
	return tools.NewSession(permissions)
}

// roadParent is a call of the session under which others can be made.
func roadParent(s *tools.Session) (parent *tools.Call) {
	r := tools.NewRegistry(nil)
	tools.Add(r, tools.Tool{Name: "parent", Description: "Gives its call away."},
		func(_ context.Context, call *tools.Call, _ struct{}) (int, error) { parent = call; return 1, nil })
	r.Call(context.Background(), tools.Request{Tool: "parent", Session: s})
	return parent
}

func roadWith(listeners int) *tools.Registry {
	r := tools.NewRegistry(nil)
	tools.Add(r, tools.Tool{Name: "nothing", Description: "Does nothing.", Effect: tools.NoEffect},
		func(context.Context, *tools.Call, struct{}) (int, error) { return 1, nil })
	for i := range listeners {
		r.Listen(fmt.Sprintf("listener-%d", i), func(_ context.Context, _ tools.Call, next func() tools.Verdict) tools.Verdict {
			return next()
		})
	}
	return r
}

func perUnit(r *tools.Registry, req tools.Request) func(context.Context) (time.Duration, error) {
	req.Tool, req.Args = "nothing", json.RawMessage(`{}`)
	return func(ctx context.Context) (time.Duration, error) {
		begun := time.Now()
		for range callsPerUnit {
			if result := r.Call(ctx, req); result.Error != nil {
				return 0, result.Error
			}
		}
		return time.Since(begun) / callsPerUnit, nil
	}
}
