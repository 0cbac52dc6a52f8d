package sandbox

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// family finds the processes that come from one started process and signals
// them. Its methods are called with the tree's lock held and before the
// started process is reaped.
type family struct {
	leader  int
	inner   inner  // nil when the leader is the command itself
	start   uint64 // the leader's start time in clock ticks
	begin   time.Time
	mark    []string
	seen    map[int]uint64 // every other member that was found: start time by number
	atExit  map[int]uint64 // those that outlived the leader
	scanned bool
}

// scope of a search: while the leader runs, or after its exit.
type scope bool

const (
	whileRunning scope = false
	afterExit    scope = true
)

// process is what a search needs to know of one process.
type process struct {
	pid, parent, group, session int
	state                       byte
	start                       uint64
}

func newFamily(cmd *exec.Cmd, inside inner) family {
	f := family{leader: cmd.Process.Pid, inner: inside, begin: time.Now(), mark: markOf(cmd.Env, os.Environ())}
	if p, ok := readProcess(f.leader); ok {
		f.start = p.start
	}
	f.seen, f.atExit = map[int]uint64{}, map[int]uint64{}
	return f
}

// markOf returns the environment entries that tell the processes of this call
// from all others: its session's own temporary directory and its call together.
// (Two sessions may have one id, when their logs have one name.) They are looked
// for in what left the session and lost its parent. The host's own entries tell
// nothing.
func markOf(env, host []string) []string {
	var mark []string
	for _, name := range []string{"TMPDIR=", "DSH_CALL_ID="} {
		entry := lastEntry(env, name)
		if len(entry) <= len(name) {
			return nil
		}
		mark = append(mark, entry)
	}
	if slices.Contains(host, mark[0]) && slices.Contains(host, mark[1]) {
		return nil
	}
	return mark
}

// lastEntry is the entry that a started process gets: the last of that name.
func lastEntry(env []string, name string) string {
	for _, entry := range slices.Backward(env) {
		if strings.HasPrefix(entry, name) {
			return entry
		}
	}
	return ""
}

// find returns the living members besides the leader.
func (f *family) find(when scope) []process {
	procs := f.candidates(when)
	members := slices.DeleteFunc(membersOf(f.leader, f.seen, procs, f.marked), f.own)
	for _, p := range members {
		f.seen[p.pid] = p.start
		if when == afterExit {
			f.atExit[p.pid] = p.start
		}
	}
	return members
}

// own reports whether p belongs to the backend: it ends by itself when the
// command has ended, and ends everything inside when it is killed.
func (f *family) own(p process) bool { return f.inner != nil && f.inner.own(p.pid) }

// membersOf picks from procs the living ones that come from the leader: by
// session, group, an ancestor, or because they were found before. marked is
// asked last, since it costs most.
func membersOf(leader int, seen map[int]uint64, procs []process, marked func(process) bool) []process {
	in := map[int]bool{leader: true}
	var members []process
	rest := slices.DeleteFunc(slices.Clone(procs), func(p process) bool { return p.pid == leader })
	take := func(belongs func(process) bool) (took bool) {
		rest = slices.DeleteFunc(rest, func(p process) bool {
			if !belongs(p) {
				return false
			}
			in[p.pid], took = true, true
			if p.alive() {
				members = append(members, p)
			}
			return true
		})
		return took
	}
	descends := func() {
		for take(func(p process) bool { return in[p.parent] }) {
		}
	}
	take(func(p process) bool {
		start, known := seen[p.pid]
		return p.session == leader || p.group == leader || known && start == p.start
	})
	descends()
	if take(marked) {
		descends()
	}
	return members
}

func (p process) alive() bool { return p.state != 'Z' && p.state != 'X' }

// marked reports whether p carries the call's mark in its environment.
func (f *family) marked(p process) bool {
	if f.mark == nil || p.start < f.start || p.pid == os.Getpid() {
		return false
	}
	env, err := readProc(p.pid, "environ")
	if err != nil {
		return false
	}
	entries := bytes.Split(env, []byte{0})
	return !slices.ContainsFunc(f.mark, func(want string) bool {
		return !slices.ContainsFunc(entries, func(have []byte) bool { return string(have) == want })
	})
}

const (
	// shortCall is short enough that process numbers cannot have gone round.
	shortCall = 250 * time.Millisecond
	// fewNumbers is how many process numbers are looked at one by one.
	fewNumbers = 64
)

// candidates are the processes that a search looks at. Numbers are given out
// in ascending order, so what a short call started lies between its leader and
// the newest number; mostly that is nothing, and nothing needs to be read.
func (f *family) candidates(when scope) []process {
	if when == afterExit && !f.scanned && time.Since(f.begin) < shortCall {
		if last, ok := newestNumber(); ok && last >= f.leader && last-f.leader <= fewNumbers {
			return readRange(f.leader+1, last)
		}
	}
	f.scanned = true
	return readAll()
}

// newestNumber is the process number that was given out last.
func newestNumber() (int, bool) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text))
	if len(fields) < 5 {
		return 0, false
	}
	n, err := strconv.Atoi(fields[4])
	return n, err == nil
}

func readRange(from, to int) []process {
	var procs []process
	for pid := from; pid <= to; pid++ {
		if p, ok := readProcess(pid); ok {
			procs = append(procs, p)
		}
	}
	return procs
}

func readAll() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	procs := make([]process, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			procs = append(procs, p)
		}
	}
	return procs
}

func readProc(pid int, name string) ([]byte, error) {
	return os.ReadFile("/proc/" + strconv.Itoa(pid) + "/" + name)
}

func readProcess(pid int) (process, bool) {
	stat, err := readProc(pid, "stat")
	if err != nil {
		return process{}, false
	}
	return parseStat(stat)
}

// parseStat reads a line of /proc/PID/stat. The name in it may hold anything,
// so what matters is found behind its last parenthesis.
func parseStat(stat []byte) (process, bool) {
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 1 || end < open {
		return process{}, false
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(stat[:open])))
	fields := bytes.Fields(stat[end+1:])
	if err != nil || len(fields) < 20 || len(fields[0]) != 1 {
		return process{}, false
	}
	p := process{pid: pid, state: fields[0][0]}
	for i, to := range []*int{&p.parent, &p.group, &p.session} {
		if *to, err = strconv.Atoi(string(fields[i+1])); err != nil {
			return process{}, false
		}
	}
	p.start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return p, err == nil
}

// terminate asks every member to end. A stopped one is continued, or it would
// not hear.
func (f *family) terminate() {
	members := f.find(whileRunning)
	group := f.inner == nil
	if group {
		_ = unix.Kill(-f.leader, unix.SIGTERM)
	}
	for _, p := range members {
		if p.group != f.leader || !group {
			p.signal(unix.SIGTERM)
		}
		p.signal(unix.SIGCONT)
	}
	if group {
		_ = unix.Kill(-f.leader, unix.SIGCONT)
	}
}

const (
	// killRounds bounds the race with a tree that forks faster than it is
	// killed.
	killRounds = 64
	// killWait is how long one round waits for the killed to be gone.
	killWait = 50 * time.Millisecond
	// killLimit bounds all rounds together: a process that another user owns,
	// or that the kernel does not let go, must not hold the caller.
	killLimit = 2 * time.Second
)

// kill ends every member that can be found, again until none is found.
func (f *family) kill() {
	end := time.Now().Add(killLimit)
	for round := range killRounds {
		members := f.find(whileRunning)
		_ = unix.Kill(-f.leader, unix.SIGKILL)
		for _, p := range members {
			p.signal(unix.SIGKILL)
		}
		// The first round may have missed what was being forked.
		if round > 0 && len(members) == 0 || time.Now().After(end) {
			return
		}
		awaitEnd(members, killWait)
	}
}

// ended counts the members that outlived the leader and are gone now.
func (f *family) ended() int {
	n := 0
	for pid, start := range f.atExit {
		if p, ok := readProcess(pid); !ok || p.start != start || !p.alive() {
			n++
		}
	}
	return n
}

// signal sends sig to exactly this process, never to a later one with its
// number.
func (p process) signal(sig syscall.Signal) {
	if fd, ok := p.open(); ok {
		defer unix.Close(fd)
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// open returns a descriptor for exactly this process.
func (p process) open() (int, bool) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return -1, false
	}
	if now, ok := readProcess(p.pid); !ok || now.start != p.start {
		unix.Close(fd)
		return -1, false
	}
	return fd, true
}

// awaitEnd returns when all of the processes have ended or the time is over.
// Those that were handed to this process when their parent died are reaped,
// each by its own descriptor.
func awaitEnd(procs []process, limit time.Duration) {
	end := time.Now().Add(limit)
	for _, p := range procs {
		fd, ok := p.open()
		if !ok {
			continue
		}
		awaitOne(fd, end)
		_ = unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WNOHANG, nil)
		unix.Close(fd)
	}
}

func awaitOne(fd int, end time.Time) {
	for {
		left := max(time.Until(end).Milliseconds(), 0)
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left))
		if err != unix.EINTR {
			return
		}
	}
}
