// Command bench measures what this module promises to be fast at, and prints
// medians. Rows of one group alternate in one process, so that whatever else
// the machine does hits them alike; the ratio is to the group's first row.
//
//	go run ./scripts/bench [-n 300] [-dir DIR] [-only TEXT]
//
// The logs are written below DIR, by default the working directory.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	goruntime "runtime"
	"slices"
	"strings"
	"time"

	"github.com/dsh-run/dsh/policy"
)

// row is one measured operation.
type row struct {
	name string
	// run does the operation once and returns how long one unit of it took.
	run func(ctx context.Context) (time.Duration, error)
}

// group is rows that are compared with its first one.
type group struct {
	name string
	// share of -n that its rows run, for slow rows. Default: 1.
	share float64
	rows  []row
	// close frees what the rows use. Default: nothing.
	close func()
}

func main() {
	n := flag.Int("n", 300, "runs of each row")
	dir := flag.String("dir", ".", "where logs are written")
	only := flag.String("only", "", "only groups whose name holds this text")
	flag.Parse()
	if err := measure(context.Background(), *n, *dir, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, n int, dir, only string) error {
	dir, err := policy.Canonical(dir)
	if err != nil {
		return err
	}
	base, err := os.MkdirTemp(dir, "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	fmt.Printf("%s/%s, %d processors, logs on %s, %d runs a row\n", goruntime.GOOS, goruntime.GOARCH, goruntime.GOMAXPROCS(0), fileSystem(base), n)
	for _, prepare := range []func(context.Context, string) (group, error){starts, reading, programs, calls, road, events} {
		g, err := prepare(ctx, base)
		if err != nil {
			return err
		}
		if strings.Contains(g.name, only) {
			err = g.measure(ctx, n)
		}
		if g.close != nil {
			g.close()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	return nil
}

// measure runs the rows in turn and prints their medians.
func (g group) measure(ctx context.Context, n int) error {
	if g.share > 0 {
		n = max(3, int(float64(n)*g.share))
	}
	took := make([][]time.Duration, len(g.rows))
	const warmUp = 3
	for i := range n + warmUp {
		for j, r := range g.rows {
			d, err := r.run(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			if i >= warmUp {
				took[j] = append(took[j], d)
			}
		}
	}
	fmt.Printf("\n%s\n", g.name)
	anchor := median(took[0])
	for j, r := range g.rows {
		m := median(took[j])
		fmt.Printf("  %-58s %10.3f ms  %7.2f\n", r.name, float64(m)/float64(time.Millisecond), float64(m)/float64(anchor))
	}
	return nil
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
