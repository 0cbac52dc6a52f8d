package main

import "errors"

// errTimeLimit is the cause of a context that --timeout ended.
var errTimeLimit = errors.New("the time limit of --timeout passed")
