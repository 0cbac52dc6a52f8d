package policy

// ParseAnswer is parseAnswer for fuzzing.
func ParseAnswer(line []byte) (pairAnswer, error) { return parseAnswer(line) }
