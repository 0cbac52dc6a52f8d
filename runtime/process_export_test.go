package runtime

// AwaitSpares returns when the idle workers are ready.
func (e *ProcessEngine) AwaitSpares() {
	e.mu.Lock()
	spares := append([]*spare(nil), e.spares...)
	e.mu.Unlock()
	for _, s := range spares {
		<-s.ready
	}
}
