package policy_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/dsh-run/dsh/policy"
)

func TestZeroValuesAreTheStrictOnes(t *testing.T) {
	var s policy.State
	var o policy.Outcome
	if s.Mode != policy.ReadOnly || s.Approval != policy.Never || o != policy.Unavailable {
		t.Errorf("a forgotten field means %v, %v, %v", s.Mode, s.Approval, o)
	}
	if verdict := (policy.Roots{}).Judge("/anything"); verdict != policy.Outside {
		t.Errorf("no roots allow: %v", verdict)
	}
}

func TestWordsOutsideTheVocabularyAreRefused(t *testing.T) {
	for _, word := range []string{"", "READ-ONLY", "read-only ", "workspace_write", "full"} {
		if _, err := policy.ParseMode(word); err == nil {
			t.Errorf("the mode %q was taken", word)
		}
		var m policy.Mode
		if err := m.UnmarshalText([]byte(word)); err == nil {
			t.Errorf("the mode %q was read from a log", word)
		}
	}
	_, err := policy.ParseApproval("sometimes")
	if bad := (*policy.WordError)(nil); !errors.As(err, &bad) || len(bad.Words) != 2 {
		t.Errorf("the error is %v", err)
	}
	if _, err := json.Marshal(policy.Mode(9)); err == nil {
		t.Error("a mode without a word was written")
	}
	if _, err := policy.ParsePreset(policy.Custom); err == nil {
		t.Error("the derived preset could be chosen")
	}
}

func TestWideningArguments(t *testing.T) {
	word := func(s string) *string { return &s }
	for _, c := range []struct {
		name                       string
		permissions, justification *string
		mode                       policy.Mode
		ok, none                   bool
	}{
		{"neither is no request", nil, nil, policy.ReadOnly, true, true},
		{"one without the other is refused", word("workspace-write"), nil, policy.ReadOnly, false, false},
		{"the other without the one is refused", nil, word("why"), policy.ReadOnly, false, false},
		{"a blank reason is refused", word("workspace-write"), word(" \n\t"), policy.ReadOnly, false, false},
		{"an unknown mode is refused", word("all"), word("why"), policy.ReadOnly, false, false},
		{"wider is taken", word("workspace-write"), word("why"), policy.ReadOnly, true, false},
		{"the widest is taken", word("danger-full-access"), word("why"), policy.WorkspaceWrite, true, false},
		{"the same is refused", word("workspace-write"), word("why"), policy.WorkspaceWrite, false, false},
		{"narrower is refused", word("read-only"), word("why"), policy.WorkspaceWrite, false, false},
		{"nothing is wider than the widest", word("danger-full-access"), word("why"), policy.DangerFullAccess, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, err := policy.ParseWidening(c.permissions, c.justification)
			if err == nil && w != nil {
				err = w.Check(c.mode)
			}
			if (err == nil) != c.ok || (w == nil) != (c.none || !c.ok && w == nil) {
				t.Errorf("got %+v, %v", w, err)
			}
			if bad := (*policy.ArgumentError)(nil); err != nil && !errors.As(err, &bad) {
				t.Errorf("the error is %T", err)
			}
		})
	}
}
