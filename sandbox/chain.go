package sandbox

// chain holds the backends of this platform in the order in which they are
// tried.
var chain = backends()

// forget drops what is known of a backend that failed, so that the next call
// probes it again.
func forget(name string) {
	for _, b := range chain {
		if f, ok := b.(interface{ forget() }); ok && b.name() == name {
			f.forget()
		}
	}
}
