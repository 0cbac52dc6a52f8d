package dsh

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dsh-run/dsh/policy"
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
	"github.com/dsh-run/dsh/tools/local"
)

// Repairs are what an earlier process of a session left open when it ended,
// and what was written as its end when the session was opened again.
type Repairs struct {
	// Torn names the blob with what stood behind the log's last event, a line
	// that was never written to its end. Nil: nothing did.
	Torn *session.Ref
	// Calls received TOOL_NOT_STARTED or TOOL_OUTCOME_UNKNOWN as their result.
	Calls tools.Repaired
	// Jobs were running; nobody saw their end.
	Jobs []local.JobStatus
	// Execs are the commands of Exec whose end nobody saw.
	Execs []string
}

// Repairs of this session; all empty for a new one.
func (s *Session) Repairs() Repairs { return s.repairs }

// resume opens the log of an earlier session and closes what it left open.
func (s *Session) resume(o *Options) error {
	if o.Log != "" || o.Temporary {
		return fmt.Errorf("the session of %s goes on in its own log; no other can be chosen", o.Resume)
	}
	path, err := filepath.Abs(o.Resume)
	if err != nil {
		return err
	}
	log, err := session.Open(path, policy.Accept)
	if err != nil {
		return err
	}
	log.Redact(s.redactor)
	s.reach.keepLog(path)
	if err := s.goOn(log, o); err != nil {
		return errors.Join(err, log.Close())
	}
	return nil
}

func (s *Session) goOn(log *session.Log, o *Options) error {
	permissions, err := policy.Resume(log, &policy.Options{Presets: o.Presets, Admit: s.reach.admit, Turn: o.Turn, By: o.By})
	if err != nil {
		return err
	}
	resumed, calls, err := tools.ResumeSession(permissions)
	if err != nil {
		return err
	}
	s.repairs.Torn, s.repairs.Calls = log.Torn(), calls
	if s.repairs.Jobs, err = s.local.Resume(resumed); err != nil {
		return err
	}
	if err := s.closeExecs(log); err != nil {
		return err
	}
	s.session = resumed
	return log.Sync()
}

// closeExecs writes an end for the commands whose end nobody saw, and lets the
// numbers of commands go on.
func (s *Session) closeExecs(log *session.Log) error {
	var open []string
	err := log.Replay(func(e session.Event) {
		if e.Type != session.ExecStart && e.Type != session.ExecEnd {
			return
		}
		var exec struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(e.Data, &exec) != nil {
			return
		}
		if e.Type == session.ExecEnd {
			open = slices.DeleteFunc(open, func(id string) bool { return id == exec.ID })
			return
		}
		open = append(open, exec.ID)
		if n, err := strconv.ParseInt(strings.TrimPrefix(exec.ID, execPrefix), 10, 64); err == nil {
			s.execs.Store(max(s.execs.Load(), n))
		}
	})
	if err != nil {
		return err
	}
	for _, id := range open {
		end := execEnd{ID: id, Error: &execError{Code: string(tools.ToolOutcomeUnknown), Message: "the process that ran it ended without seeing its end; it may still run"}}
		if _, err := log.Append(session.ExecEnd, end); err != nil {
			return err
		}
	}
	s.repairs.Execs = open
	return nil
}
