package local

import (
	"github.com/dsh-run/dsh/session"
	"github.com/dsh-run/dsh/tools"
)

type jobs struct{}

func (s *Set) newJobs(*tools.Session) *jobs { return &jobs{} }
func (*jobs) apply(session.Event)           {}
func (*jobs) end() []JobStatus              { return nil }

type JobStatus struct{}

func (s *Set) shellTools() []tools.Tool { return nil }
