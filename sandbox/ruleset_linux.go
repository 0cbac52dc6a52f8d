//go:build linux && (amd64 || arm64)

package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/dsh-run/dsh/policy"
)

// ruleset is a Landlock ruleset with what it was built from.
type ruleset struct {
	file   *os.File // closed when nobody uses it any more
	grants []grant
}

// grant is one path of a ruleset and the object that it meant.
type grant struct {
	path string
	is   identity
}

func identityOf(st *unix.Stat_t) identity {
	return identity{uint64(st.Dev), st.Ino}
}

// current reports whether every path still means what it meant.
func (r *ruleset) current() bool {
	return !slices.ContainsFunc(r.grants, func(g grant) bool {
		var st unix.Stat_t
		if err := unix.Stat(g.path, &st); err != nil {
			return g.is != identity{}
		}
		return g.is != identityOf(&st)
	})
}

// cacheSize is the number of rulesets kept. A session needs one per mode, and
// rarely more than one session's are in use.
const cacheSize = 32

// rulesets keeps built rulesets, the one used last at the end.
type rulesets struct {
	mu   sync.Mutex
	kept []keptRuleset
}

type keptRuleset struct {
	key string
	*ruleset
}

// get returns the ruleset kept under key if it is still right, or what build
// makes of it now.
func (c *rulesets) get(key string, build func() (*ruleset, error)) (*ruleset, error) {
	if r := c.find(key); r != nil && r.current() {
		return r, nil
	}
	r, err := build()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = slices.DeleteFunc(c.kept, func(k keptRuleset) bool { return k.key == key })
	c.kept = append(c.kept, keptRuleset{key, r})
	if len(c.kept) > cacheSize {
		c.kept = slices.Delete(c.kept, 0, 1)
	}
	return r, nil
}

func (c *rulesets) find(key string) *ruleset {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.kept, func(k keptRuleset) bool { return k.key == key })
	if at < 0 {
		return nil
	}
	k := c.kept[at]
	c.kept = append(slices.Delete(c.kept, at, at+1), k)
	return k.ruleset
}

// rulesetKey names the ruleset of a scope. The root itself is part of it in
// every mode, since it is checked.
func rulesetKey(s policy.Scope, roots policy.Roots) string {
	return fmt.Sprintf("%v %q %q %q %q", s.Mode, s.Root, roots.Dirs, roots.Devices, roots.Terminals)
}

// buildRuleset grants reading and executing everywhere, and writing below the
// roots and on the devices and terminals. The workspace itself is checked and
// watched in every mode.
func buildRuleset(abi int, s policy.Scope, roots policy.Roots, terminals []terminal) (*ruleset, error) {
	if err := checkRoot(s.Root); err != nil {
		return nil, err
	}
	file, err := createRuleset(handledRights(abi))
	if err != nil {
		return nil, err
	}
	r := &ruleset{file: file}
	if err := r.fill(abi, s, roots, terminals); err != nil {
		r.file.Close()
		return nil, err
	}
	return r, nil
}

func createRuleset(attr ll.RulesetAttr) (*os.File, error) {
	fd, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return nil, &setupError{"landlock_create_ruleset", err}
	}
	return os.NewFile(uintptr(fd), "landlock ruleset"), nil
}

func (r *ruleset) fill(abi int, s policy.Scope, roots policy.Roots, terminals []terminal) error {
	if err := r.grant("/", readRights, isDirectory, byLinks); err != nil {
		return err
	}
	if err := r.grant(s.Root, readRights, isDirectory, asSpelled); err != nil {
		return err
	}
	for _, dir := range roots.Dirs {
		if err := r.grant(dir, directoryRights(abi), isDirectory, reaching(dir, s)); err != nil {
			return err
		}
	}
	for _, device := range roots.Devices {
		if err := r.grant(device, deviceRights(abi), isCharacterDevice, byLinks); err != nil {
			return err
		}
	}
	for _, dir := range roots.Terminals {
		if err := r.grant(dir, deviceRights(abi), isDirectory, byLinks); err != nil {
			return err
		}
	}
	for _, t := range terminals {
		if err := r.grantTerminal(t, deviceRights(abi)); err != nil {
			return err
		}
	}
	return nil
}

// reach says how a path may lead to its object.
type reach bool

const (
	byLinks   reach = false // links were made by whoever set up the machine
	asSpelled reach = true  // a link would be the work of an earlier command
)

// reaching is strict with the directories of the call: a parent of theirs may
// be writable for commands, and a link put in their place must open nothing.
func reaching(dir string, s policy.Scope) reach {
	return reach(dir == s.Root || dir == s.Temp || slices.Contains(s.Extra, dir) || s.Worktree != nil && policy.Within(s.Worktree.CommonDir, dir))
}

// grant adds a rule for path and remembers which object it is. What is missing
// or of another kind is not granted; it is looked for again at the next call.
func (r *ruleset) grant(path string, rights uint64, wanted func(mode uint32) bool, how reach) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		r.grants = append(r.grants, grant{path: path})
		return nil
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &setupError{"landlock: look at " + path, err}
	}
	r.grants = append(r.grants, grant{path, identityOf(&st)})
	if !wanted(st.Mode) {
		return nil
	}
	if how == asSpelled {
		if err := checkSpelling(fd, path); err != nil {
			return err
		}
	}
	if err := allowBeneath(r.file, fd, rights); err != nil {
		return &setupError{"landlock: grant " + path, err}
	}
	return nil
}

func (r *ruleset) grantTerminal(t terminal, rights uint64) error {
	var err error
	failed := control(t.file, func(fd int) { err = allowBeneath(r.file, fd, rights) })
	if err = cmp.Or(failed, err); err != nil {
		return &setupError{"landlock: grant the terminal", err}
	}
	return nil
}

// allowBeneath grants rights to what fd is open on, and below it.
func allowBeneath(ruleset *os.File, fd int, rights uint64) error {
	rule := ll.PathBeneathAttr{AllowedAccess: rights, ParentFd: fd}
	return ll.LandlockAddPathBeneathRule(int(ruleset.Fd()), &rule, 0)
}

// checkSpelling asks the kernel whether the descriptor is what path spells,
// without a link on the way.
func checkSpelling(fd int, path string) error {
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	switch {
	case err != nil:
		return &setupError{"landlock: see where " + path + " leads (is /proc mounted?)", err}
	case real != path:
		return &policy.RootError{Root: path, Reason: "a link leads from it to " + strconv.Quote(real) + "; name that directory itself"}
	}
	return nil
}

func isDirectory(mode uint32) bool       { return mode&unix.S_IFMT == unix.S_IFDIR }
func isCharacterDevice(mode uint32) bool { return mode&unix.S_IFMT == unix.S_IFCHR }
