//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/dsh-run/dsh/policy"
)

// BenchmarkStart alternates unconfined and confined runs of "bash -c true", so
// that what else the machine does hits all alike, and reports their medians.
func BenchmarkStart(b *testing.B) {
	needKernel(b)
	root, temp := b.TempDir(), b.TempDir()
	runs := []struct {
		name string
		run  func() error
	}{
		{"raw", func() error { return exec.Command("bash", "-c", "true").Run() }},
		{"read-only", func() error { return benchConfined(b, policy.ReadOnly, root, temp) }},
		{"workspace-write", func() error { return benchConfined(b, policy.WorkspaceWrite, root, temp) }},
		{"unconfined-tree", runTree},
	}
	took := make([][]time.Duration, len(runs))
	for b.Loop() {
		for i, r := range runs {
			began := time.Now()
			if err := r.run(); err != nil {
				b.Fatalf("%s: %v", r.name, err)
			}
			took[i] = append(took[i], time.Since(began))
		}
	}
	raw := median(took[0])
	for i, r := range runs {
		m := median(took[i])
		b.ReportMetric(float64(m.Microseconds()), r.name+"-µs")
		b.ReportMetric(float64(m)/float64(raw), r.name+"-×raw")
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func benchConfined(b *testing.B, mode policy.Mode, root, temp string) error {
	c, err := Confine(b.Context(), Policy{Scope: policy.Scope{Mode: mode, Root: root, Temp: temp}})
	if err != nil {
		return err
	}
	if err := c.Start(exec.Command("bash", "-c", "true")); err != nil {
		return err
	}
	_, err = c.Wait()
	return err
}

func runTree() error {
	t, err := StartTree(exec.Command("bash", "-c", "true"))
	if err != nil {
		return err
	}
	_, err = t.Wait()
	return err
}
