package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// size is a flag value in bytes: an integer with an optional unit, powers of
// 1024.
type size int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30},
	{"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30},
}

func parseSize(text string) (size, error) {
	digits, unit := text, int64(1)
	for _, u := range sizeUnits {
		if d, ok := strings.CutSuffix(text, u.suffix); ok {
			digits, unit = d, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is no size; want a positive integer with an optional K, M or G", text)
	}
	return size(n * unit), nil
}

func (s *size) Set(text string) (err error) {
	*s, err = parseSize(text)
	return err
}

func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*s), 10)
}

func (*size) Type() string { return "SIZE" }

// UnmarshalText reads a size of a configuration file.
func (s *size) UnmarshalText(text []byte) error { return s.Set(string(text)) }
