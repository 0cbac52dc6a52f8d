package local

import (
	"context"
	"crypto/sha256"
	"io/fs"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/tools"
)

// plan makes the new state of a file from the old one, which is empty where
// there is no file. seen is what the session saw of it.
type plan func(old []byte, seen observation) (revision, error)

// revision is a new state of a file, and what of it the session then knows.
type revision struct {
	content []byte
	seen    []span
}

// whole is a revision of which everything is known.
func whole(content []byte) revision {
	return revision{content, []span{{0, int64(len(content))}}}
}

// changed is what a change did.
type changed struct {
	path        string
	existed     bool
	old, new    []byte
	confinement policy.Confinement
}

// change replaces one file by what p makes of it. Judging, comparing with what
// was seen, and publishing happen in one turn at the file. An error means that
// nothing has changed.
//
// With mustExist a missing file is an error, before anything else.
func (s *Set) change(ctx context.Context, call *tools.Call, path string, mustExist bool, p plan) (changed, error) {
	st, err := s.of(call.Session)
	if err != nil {
		return changed{}, err
	}
	t, err := s.resolve(call, path)
	if err != nil {
		return changed{}, err
	}
	unlock, err := pathLocks.lock(ctx, t.path)
	if err != nil {
		return changed{}, aborted(t.path)
	}
	defer unlock()
	t, err = s.again(call, path, t)
	if err != nil {
		return changed{}, err
	}
	if mustExist && !t.exists() {
		return changed{}, notFound(path, t)
	}
	c := changeOf{Set: s, call: call, target: t, seen: st.seen}
	done, err := c.run(ctx, p)
	if err != nil && ctx.Err() != nil {
		return changed{}, aborted(t.path)
	}
	return done, err
}

// aborted ends a change whose caller gave up in time.
func aborted(path string) error {
	return fail(FSAborted, "cancelled; %s was not changed", shownPath(path))
}

// again resolves path once more, now that nobody else of this process is at it.
func (s *Set) again(call *tools.Call, path string, before target) (target, error) {
	t, err := s.resolve(call, path)
	if err == nil && t.path != before.path {
		err = swapFailure(before.path, errSwapped)
	}
	if err == nil && t.exists() {
		err = irregular(t.path, t.info.Mode())
	}
	return t, err
}

// changeOf is one change under way.
type changeOf struct {
	*Set
	call   *tools.Call
	target target
	seen   *observations
}

func (c changeOf) run(ctx context.Context, p plan) (changed, error) {
	if err := c.admit(c.call, c.target); err != nil {
		return changed{}, err
	}
	done, before, r, err := c.revise(ctx, p)
	if err != nil {
		return changed{}, err
	}
	done.confinement, err = c.publish(ctx, before, r)
	return done, err
}

// revise makes the new state without publishing it. before is the file it
// replaces, nil where there is none.
func (c changeOf) revise(ctx context.Context, p plan) (done changed, before fs.FileInfo, r revision, err error) {
	done = changed{path: c.target.path, existed: c.target.exists()}
	var now *version
	if done.existed {
		if done.old, before, now, err = c.current(ctx); err != nil {
			return done, nil, r, err
		}
	}
	seen, err := c.compare(now)
	if err != nil {
		return done, nil, r, err
	}
	if r, err = p(done.old, seen); err != nil {
		return done, nil, r, err
	}
	done.new = r.content
	return done, before, r, nil
}

// current is the file as it is.
func (c changeOf) current(ctx context.Context) ([]byte, fs.FileInfo, *version, error) {
	f, err := openFile(c.target)
	if err != nil {
		return nil, nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, nil, osFailure(c.target.path, err)
	}
	if err := replaceable(c.target.path, info); err != nil {
		return nil, nil, nil, err
	}
	old, v, err := load(ctx, f, c.target.path)
	return old, info, &v, err
}

// compare refuses a change of a state that the session has not seen. now is
// nil where there is no file.
func (c changeOf) compare(now *version) (observation, error) {
	path := c.target.path
	seen, known := c.seen.of(path)
	switch {
	case now == nil && known && !seen.Absent:
		return seen, fail(StaleVersion, "%s is gone since it was read; read it again to see that, then repeat the change", shownPath(path))
	case now == nil:
		return seen, nil
	case known && seen.Absent:
		return seen, fail(StaleVersion, "%s was not there when it was looked for, and is there now; read it, then repeat the change", shownPath(path))
	case !known:
		return seen, fail(NotObserved, "%s has not been read in this session; read it first, then repeat the change", shownPath(path))
	case now.SHA256 != seen.Version.SHA256:
		return seen, stale(path)
	}
	return seen, nil
}

// publish puts the content in place and notes what the session knows of it.
func (c changeOf) publish(ctx context.Context, before fs.FileInfo, r revision) (policy.Confinement, error) {
	p := publication{target: c.target, content: r.content, before: before}
	var info fs.FileInfo
	by, err := c.confine(ctx, c.call, func() (err error) {
		info, err = p.run(ctx)
		return err
	})
	if err != nil {
		return by, err
	}
	c.call.Confine(by)
	sum := sha256.Sum256(r.content)
	// A log that cannot be written fails the call when its result is logged;
	// here the change has happened.
	_ = c.seen.saw(c.target.path, versionOf(info, int64(len(r.content)), sum[:]), r.seen...)
	return by, nil
}
