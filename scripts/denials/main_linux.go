package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
)

//go:embed commands.txt
var commandText string

// row is one outcome of one command.
type row struct {
	Command string `json:"command"`
	Backend string `json:"backend"`
	Mode    string `json:"mode"`
	User    string `json:"user"`
	Locale  string `json:"locale"`
	Exit    int    `json:"exit"`
	Signal  int    `json:"signal,omitempty"`
	Stderr  string `json:"stderr"`
	// Denied is the label: what really happened.
	Denied bool `json:"denied"`
	// Said, Confidence and Path are what Classify makes of it.
	Said       bool   `json:"said"`
	Confidence string `json:"confidence,omitempty"`
	Path       string `json:"path,omitempty"`
}

// The goals.
const (
	wantPrecision = 0.98
	wantRecall    = 0.98
	wantByPath    = 0.90
)

// nobody is the ordinary user.
const nobody = 65534

func main() {
	wrong := flag.Bool("wrong", false, "print only rows that are judged wrongly")
	save := flag.String("save", "", "write the rows to this `FILE`")
	only := flag.String("only", "", "only commands that contain this `TEXT`")
	child := flag.Bool("child", false, "run as the present user and print JSON lines")
	flag.Parse()
	if *child {
		fail(runAll(*only, os.Stdout))
		return
	}
	rows, err := collect(*only)
	fail(err)
	if *save != "" {
		fail(saveRows(*save, rows))
	}
	printRows(rows, *wrong)
	if !summary(rows) {
		os.Exit(1)
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "denials:", err)
		os.Exit(2)
	}
}

// commands are the lines that are one.
func commands(only string) []string {
	var list []string
	for line := range strings.Lines(commandText) {
		if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "#") && strings.Contains(line, only) {
			list = append(list, line)
		}
	}
	return list
}

// collect runs everything as this user and, as root, as the ordinary one too.
func collect(only string) ([]row, error) {
	dir, err := os.MkdirTemp("/var/tmp", "dsh-denials-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "denials")
	if err := copyFile(binary, "/proc/self/exe"); err != nil {
		return nil, err
	}
	users := []int{os.Getuid()}
	if os.Getuid() == 0 {
		users = append(users, nobody)
	}
	var rows []row
	for _, uid := range users {
		found, err := runAs(uid, binary, dir, only)
		if err != nil {
			return nil, err
		}
		rows = append(rows, found...)
	}
	return rows, nil
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// runAs runs everything as one user, with a home of its own.
func runAs(uid int, binary, dir, only string) ([]row, error) {
	home := filepath.Join(dir, fmt.Sprintf("home-%d", uid))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, "-child", "-only", only)
	cmd.Dir, cmd.Stderr = home, os.Stderr
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C"}
	if os.Getuid() == 0 {
		if err := os.Chown(home, uid, uid); err != nil {
			return nil, err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	rows, err := readRows(out)
	if waited := cmd.Wait(); err == nil {
		err = waited
	}
	return rows, err
}

func readRows(from io.Reader) (rows []row, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%q: %w", lines.Text(), err)
		}
		rows = append(rows, r)
	}
	return rows, lines.Err()
}

func saveRows(path string, rows []row) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	enc := json.NewEncoder(file)
	enc.SetEscapeHTML(false)
	for _, r := range rows {
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	return file.Close()
}

func printRows(rows []row, onlyWrong bool) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "VERDICT\tWAS\tSAID\tEXIT\tBACKEND\tMODE\tUSER\tLOCALE\tCOMMAND\tSTDERR")
	for _, r := range rows {
		if onlyWrong && r.Denied == r.Said {
			continue
		}
		fmt.Fprintf(w, "%s\t%v\t%v %s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", verdictOf(r), r.Denied, r.Said, r.Confidence, r.Exit, r.Backend, r.Mode, r.User, r.Locale,
			r.Command, shorten(r.Stderr))
	}
	w.Flush()
}

func verdictOf(r row) string {
	switch {
	case r.Denied == r.Said:
		return "right"
	case r.Denied:
		return "MISSED"
	default:
		return "FALSE"
	}
}

func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > 160 {
		text = text[:80] + " … " + text[len(text)-80:]
	}
	return strings.ToValidUTF8(text, "?")
}

// summary prints the measures and reports whether all goals are met.
func summary(rows []row) bool {
	var truly, said, both, byPath int
	for _, r := range rows {
		if r.Denied {
			truly++
		}
		if r.Said {
			said++
		}
		if r.Denied && r.Said {
			both++
			if r.Confidence == "path" {
				byPath++
			}
		}
	}
	precision, recall, path := ratio(both, said), ratio(both, truly), ratio(byPath, truly)
	fmt.Printf("%d outcomes, %d denials: precision %.4f (want %.2f), recall %.4f (want %.2f), by path %.4f (want %.2f)\n",
		len(rows), truly, precision, wantPrecision, recall, wantRecall, path, wantByPath)
	return precision >= wantPrecision && recall >= wantRecall && path >= wantByPath
}

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}
