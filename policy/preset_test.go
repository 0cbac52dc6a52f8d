package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dsh-run/dsh/policy"
)

func TestAPresetTableListsTheBuiltInOnesFirst(t *testing.T) {
	table, err := policy.NewPresetTable(
		policy.Preset{Name: "mine", Mode: policy.WorkspaceWrite},
		policy.Preset{Name: "workspace-write", Label: "Ours", Mode: policy.WorkspaceWrite, Approval: policy.Never},
		policy.Preset{Name: "yours", Approval: policy.Ask})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range table.List() {
		got = append(got, p.Name+"="+p.Label)
	}
	want := "read-only=Read only workspace-write=Ours danger-full-access=Full access mine=mine yours=yours"
	if strings.Join(got, " ") != want {
		t.Errorf("lists %q, want %s", got, want)
	}
	table.List()[0].Name = "changed"
	if p, err := table.Parse("read-only"); err != nil || p.Name != "read-only" {
		t.Errorf("a list that was handed out changed the table: %+v, %v", p, err)
	}
}

func TestAPresetThatCannotBeChosenIsAStartUpError(t *testing.T) {
	for _, c := range []struct {
		name string
		bad  []policy.Preset
	}{
		{"the derived name is reserved", []policy.Preset{{Name: "custom"}}},
		{"an empty name", []policy.Preset{{}}},
		{"a name with a space", []policy.Preset{{Name: "my preset"}}},
		{"a name that differs from another only in case", []policy.Preset{{Name: "Read-Only"}}},
		{"a name that looks like a flag", []policy.Preset{{Name: "-x"}}},
		{"a name of 65 characters", []policy.Preset{{Name: strings.Repeat("a", 65)}}},
		{"a name with a newline", []policy.Preset{{Name: "a\n"}}},
		{"one name twice", []policy.Preset{{Name: "a"}, {Name: "b"}, {Name: "a"}}},
		{"a built-in name twice", []policy.Preset{{Name: "read-only"}, {Name: "read-only"}}},
		{"a mode without a word", []policy.Preset{{Name: "a", Mode: 7}}},
		{"a policy without a word", []policy.Preset{{Name: "a", Approval: 7}}},
		{"a sentence of two lines", []policy.Preset{{Name: "a", Sentence: "b\nc"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, err := policy.NewPresetTable(c.bad...)
			if bad := (*policy.PresetError)(nil); table != nil || !errors.As(err, &bad) || bad.Name != c.bad[len(c.bad)-1].Name {
				t.Errorf("got %v, %v", table, err)
			}
		})
	}
}

func TestTheNameOfAPair(t *testing.T) {
	table, err := policy.NewPresetTable(policy.Preset{Name: "review", Mode: policy.ReadOnly, Approval: policy.Ask})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, chosen string
		mode         policy.Mode
		approval     policy.Approval
		want         string
	}{
		{"the chosen one where it fits", "review", policy.ReadOnly, policy.Ask, "review"},
		{"the first that fits where none was chosen", "", policy.ReadOnly, policy.Ask, "read-only"},
		{"the first that fits where the chosen one no longer does", "danger-full-access", policy.ReadOnly, policy.Ask, "read-only"},
		{"the first that fits where the chosen one is unknown", "gone", policy.ReadOnly, policy.Ask, "read-only"},
		{"custom where none fits", "review", policy.ReadOnly, policy.Never, policy.Custom},
	} {
		if got := table.Name(c.chosen, c.mode, c.approval); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
