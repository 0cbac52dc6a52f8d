//go:build !race

package session_test

// raceDetector says that the tests run many times slower.
const raceDetector = false
