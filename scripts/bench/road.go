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
		g.rows = append(g.rows, row{fmt.Sprintf("not logged, %d listeners", listeners), unlogged(roadWith(listeners))})
	}
	for _, listeners := range []int{0, 5, 20} {
		g.rows = append(g.rows, row{fmt.Sprintf("logged, %d listeners", listeners), logged(roadWith(listeners), s)})
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

// unlogged measures calls without a session.
func unlogged(r *tools.Registry) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) { return perUnit(ctx, r, tools.Request{ID: "x"}) }
}

// logged measures the calls that the body of another one makes.
func logged(r *tools.Registry, s *tools.Session) func(context.Context) (time.Duration, error) {
	var took time.Duration
	tools.Add(r, tools.Tool{Name: "parent", Description: "Calls the other one.", Effect: tools.NoEffect},
		func(ctx context.Context, call *tools.Call, _ struct{}) (n int, err error) {
			took, err = perUnit(ctx, r, tools.Request{ID: call.ID + ":1", Parent: call})
			return callsPerUnit, err
		})
	return func(ctx context.Context) (time.Duration, error) {
		if result := r.Call(ctx, tools.Request{Tool: "parent", Session: s}); result.Error != nil {
			return 0, result.Error
		}
		return took, nil
	}
}

// perUnit makes one call again and again.
func perUnit(ctx context.Context, r *tools.Registry, req tools.Request) (time.Duration, error) {
	req.Tool, req.Args = "nothing", json.RawMessage(`{}`)
	begun := time.Now()
	for range callsPerUnit {
		if result := r.Call(ctx, req); result.Error != nil {
			return 0, result.Error
		}
	}
	return time.Since(begun) / callsPerUnit, nil
}
