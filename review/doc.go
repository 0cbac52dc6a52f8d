// Package review reads the files in which people write down what is allowed:
// strictly, so that a mistyped key is an error and never a rule that does not
// hold.
package review
