package toolstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

// scene is a road with the stage under test on it.
type scene struct {
	registry *tools.Registry
	session  *tools.Session
	probe    *probe
}

func (s subject) scene(t testing.TB) *scene {
	t.Helper()
	c := &scene{probe: newProbe(), session: newSession(t)}
	c.registry = tools.NewRegistry(&tools.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	addTools(c.registry)
	s.install(c.registry, c.probe)
	return c
}

func newSession(t testing.TB) *tools.Session {
	t.Helper()
	log, err := session.Create(filepath.Join(t.TempDir(), "session.jsonl"), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	permissions, err := policy.Begin(log, policy.ReadOnly, policy.Never, "toolstest", nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := tools.NewSession(permissions)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var errHangs = errors.New("it has not returned")

// call makes one call; errHangs says that it did not come back.
func (c *scene) call(ctx context.Context, s shape) error {
	request := s.request
	if s.session {
		request.Session = c.session
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.registry.Call(ctx, request)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(hangs()):
		return errHangs
	}
}

// shapes makes calls of all shapes one after another and returns what speaks
// against the claim.
func (s subject) shapes(t testing.TB, about claim) error {
	c := s.scene(t)
	for _, shape := range shapes {
		ctx, cancel := liveContext(t)
		err := c.call(ctx, shape)
		cancel()
		if err != nil && about == returns {
			return fmt.Errorf("%s: %w", shape.name, err)
		}
		if err != nil {
			return nil // the claim about returning says so
		}
		if found := c.probe.against(about); found != nil {
			return fmt.Errorf("%s: %w", shape.name, found)
		}
	}
	if about == noLateNext || about == noLateBody {
		c.probe.straggle()
	}
	return c.probe.against(about)
}

type contextKey struct{}

// liveContext is the context of a caller: with a deadline and a value that a
// stage must not lose.
func liveContext(t testing.TB) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithValue(t.Context(), contextKey{}, "caller's"), time.Hour)
}

// crowd makes calls of all shapes at once.
func (s subject) crowd(t testing.TB) error {
	c := s.scene(t)
	ctx, cancel := liveContext(t)
	defer cancel()
	errs := make(chan error, 8)
	var group sync.WaitGroup
	for range cap(errs) {
		group.Go(func() { errs <- c.all(ctx) })
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return c.probe.against(noPanic)
}

func (c *scene) all(ctx context.Context) error {
	for _, shape := range shapes {
		if err := c.call(ctx, shape); err != nil {
			return fmt.Errorf("%s: %w", shape.name, err)
		}
	}
	return nil
}

// gone ends the context of each call as the stage is entered.
func (s subject) gone(t testing.TB) error {
	c := s.scene(t)
	for _, shape := range shapes {
		ctx, cancel := liveContext(t)
		c.probe.onEnter(cancel)
		err := c.call(ctx, shape)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %w after the end of its context", shape.name, err)
		}
	}
	return nil
}

// leaving ends the context of a call while what is inside of the stage runs.
func (s subject) leaving(t testing.TB, about claim) error {
	c := s.scene(t)
	ctx, cancel := liveContext(t)
	defer cancel()
	c.probe.onReach(cancel)
	err := c.call(ctx, shapes[0])
	if err != nil && about == endsInside {
		return err
	}
	return c.probe.against(about)
}

// joined is what was found as one error.
func joined(found []string) error {
	if len(found) == 0 {
		return nil
	}
	return errors.New(strings.Join(found, "; "))
}
