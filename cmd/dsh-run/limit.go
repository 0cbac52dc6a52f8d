package main

import (
	"fmt"
	"strconv"
	"time"
)

// The flags of limits are unset or more than 0: a limit of 0 would be read as
// none by one person and as nothing at all by the next.

// timeLimit is the flag value of a duration.
type timeLimit time.Duration

func (l *timeLimit) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return fmt.Errorf("%q is no time limit; want a duration of more than 0, such as 30s or 5m", text)
	}
	*l = timeLimit(d)
	return nil
}

func (l *timeLimit) String() string {
	if *l == 0 {
		return ""
	}
	return time.Duration(*l).String()
}

func (*timeLimit) Type() string { return "DURATION" }

// countLimit is the flag value of a number.
type countLimit int

func (l *countLimit) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		return fmt.Errorf("%q is no limit; want an integer of 1 or more", text)
	}
	*l = countLimit(n)
	return nil
}

func (l *countLimit) String() string {
	if *l == 0 {
		return ""
	}
	return strconv.Itoa(int(*l))
}

func (*countLimit) Type() string { return "N" }
