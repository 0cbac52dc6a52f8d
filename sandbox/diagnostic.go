package sandbox

import (
	"regexp"
	"slices"
	"strings"
)

// errorKind is the kind of a failed system call that a diagnostic speaks of.
type errorKind uint8

const (
	accessError      errorKind = iota // EACCES
	readOnlyError                     // EROFS
	crossDeviceError                  // EXDEV
	permissionError                   // EPERM
	busyError                         // EBUSY
	unnamedError                      // a program's own words, without an error's name
)

// diagnostic is one line of a command's stderr that speaks of such an error.
type diagnostic struct {
	kind errorKind
	// paths that the line may name, the likeliest first.
	paths []string
	// removes: the line speaks of removing or renaming, which is a matter of
	// the directory and not of the file.
	removes bool
	// rmdir: only an empty directory can be removed so.
	rmdir bool
	// makes: it speaks of a directory that is made, with those above it.
	makes bool
	// metadata: it speaks of a mode, an owner or times.
	metadata bool
	// tells: the wording alone, without a path, speaks of a file.
	tells bool
	// foreign: it speaks of something else than a file.
	foreign bool
}

// errorForms are the ways in which programs spell the errors: their names, and
// what the C library calls them in the languages that it is used in most.
var errorForms = []struct {
	kind errorKind
	re   *regexp.Regexp
}{
	{accessError, regexp.MustCompile(`(?i:permission denied|keine berechtigung|permission non accordée|permiso denegado|permesso negato` +
		`|permissão negada|отказано в доступе|brak dostępu|toegang geweigerd|許可がありません|权限不够)|\bEACCES\b`)},
	{readOnlyError, regexp.MustCompile(`(?i:read-only file system|das dateisystem ist nur lesbar|système de fichiers accessible en lecture seulement` +
		`|sistema de (?:ficheros|archivos) de s[oó]lo lectura|file system in sola lettura|sistema de arquivos somente para leitura` +
		`|файловая система доступна только для чтения|system plików wyłącznie do odczytu|bestandssysteem is alleen-lezen` +
		`|読み込み専用ファイルシステムです|只读文件系统)|\bEROFS\b`)},
	{crossDeviceError, regexp.MustCompile(`(?i:invalid cross-device link|cross-device link not permitted|ungültiger link über gerätegrenzen hinweg` +
		`|lien physique inter-périphérique invalide|enlace cruzado entre dispositivos no permitido|collegamento tra dispositivi non valido` +
		`|link entre dispositivos inválido|неверная ссылка между устройствами|błędne dowiązanie między urządzeniami` +
		`|ongeldige koppeling tussen apparaten|無効なクロスデバイスリンクです|无效的跨设备链接)|\bEXDEV\b`)},
	{permissionError, regexp.MustCompile(`(?i:operation not permitted|die operation ist nicht erlaubt|opération non permise|operación no permitida` +
		`|operazione non permessa|operação não permitida|операция не позволена|операция не допускается|operacja niedozwolona|operatie niet toegestaan` +
		`|許可されていない操作です|不允许的操作)|\bEPERM\b`)},
	{busyError, regexp.MustCompile(`(?i:device or resource busy|das gerät oder die ressource ist belegt|périphérique ou ressource occupé` +
		`|dispositivo o recurso ocupado|dispositivo o risorsa occupata|dispositivo ou recurso está ocupado|устройство или ресурс занято` +
		`|urządzenie lub zasoby zajęte|apparaat of hulpbron is bezig|デバイスもしくはリソースがビジー状態です|设备或资源忙)|\bEBUSY\b`)},
}

// fileForms speak of a file that could not be written, without an error's
// name.
var fileForms = regexp.MustCompile(`unable to open database|attempt to write a readonly database|insufficient permission for adding an object to repository database` +
	`|unable to create temporary (?:object directory|file)|^curl: \(23\) `)

// foreignForms speak of what is no file: mounts, processes, sockets, users.
var foreignForms = regexp.MustCompile(`^(?:\S*/)?(?:u?mount|chroot|unshare|nsenter|pivot_root|kill|pkill|su|sudo|ping|ssh|docker|nice|renice|ionice|chrt|setpriv|capsh|ip|iptables|hostname|date|dmesg|sysctl|modprobe|insmod): ` +
	`|: (?:kill|ulimit): |\b(?:syscall: '(?:listen|bind|connect|kill|setuid)'|listen (?:EACCES|EPERM)|bind (?:EACCES|EPERM)|connect (?:EACCES|EPERM))`)

// metadataForms speak of what belongs to a file and is not its content.
var metadataForms = regexp.MustCompile(`(?i)\b(?:chmod|chown|chgrp|utimes?|utimensat|lchown|fchmod|touch|setxattr|permissions|ownership|owner|times|mode|attributes?|zugriffsrechte|eigentümer|besitzer|gruppe|zeiten|permissions|propriétaire)\b|Zugriffsrechte|setting times|setzen der Zeiten`)

// fileTells are wordings of an error that come from file operations: those of
// Rust and Python, and the codes that Node prints.
var fileTells = regexp.MustCompile(`\(os error (13|18|30)\)|\[Errno (18|30)\]|\b(code|errno:?) '?(EACCES|EROFS|EXDEV)\b`)

var removing = regexp.MustCompile(`(?i)\b(remove|removing|unlink|unlinkat|rmdir|rename|renaming|move|moving|delete|deleting|entfernen|verschieben|löschen|umbenennen|supprimer|déplacer|eliminar|borrar|mover)\b`)

var making = regexp.MustCompile(`(?i)\b(?:mkdir\w*|director(?:y|ies)|verzeichnis\w*|répertoire|directorio|makedirs)\b`)

const (
	// mostText and mostLines bound the work on a flood; its end counts.
	mostText  = 256 << 10
	mostLines = 200
)

// lookBack is how many lines before a bare error its path may be named in.
const lookBack = 4

// diagnose returns the diagnostics in a command's stderr, in order.
func diagnose(stderr string) []diagnostic {
	lines := strings.Split(stderr[max(0, len(stderr)-mostText):], "\n")
	var found []diagnostic
	for i, line := range lines {
		if diag, ok := diagnoseLine(strings.TrimRight(line, "\r "), lines[max(0, i-lookBack):i]); ok {
			found = append(found, diag)
		}
	}
	return found[max(0, len(found)-mostLines):]
}

func diagnoseLine(line string, before []string) (diagnostic, bool) {
	for _, form := range errorForms {
		at := form.re.FindStringIndex(line)
		if at == nil || !isStatement(line[at[1]:]) {
			continue
		}
		diag := diagnostic{kind: form.kind, removes: removing.MatchString(line), tells: fileTells.MatchString(line), metadata: metadataForms.MatchString(line),
			rmdir: strings.HasPrefix(line, "rmdir: "), makes: making.MatchString(line)}
		if foreignForms.MatchString(line) {
			return diagnostic{kind: form.kind, foreign: true}, true
		}
		diag.paths = pathsAround(line[:at[0]], line[at[1]:])
		diag.foreign = len(diag.paths) == 0 && !isLabel(line[:at[0]])
		if len(diag.paths) == 0 && isBare(line[:at[0]]) {
			diag.paths = quotedBefore(before)
		}
		diag.tells = diag.tells || diag.kind == crossDeviceError
		return diag, true
	}
	if fileForms.MatchString(line) {
		return diagnostic{kind: unnamedError, paths: quoted(line), tells: fileTell(line)}, true
	}
	return diagnostic{}, false
}

// continuations are what follows the name of an error where it is one: the
// end, a path behind a colon, a call behind a comma, a position, a number.
// "Permission denied (publickey)" and "permission denied while trying to
// connect" are other things.
// fileTell reports a form that means a denial even without any path.
func fileTell(line string) bool { return !strings.HasPrefix(line, "curl: ") }

var continuations = regexp.MustCompile(`^(\.?$|[:;,] ?\S|\)|'|"| @ | \(os error| \[| - | at \S+ line \d|: )`)

func isStatement(after string) bool { return continuations.MatchString(after) }

// isBare reports that the error stands alone on its line, as in "Caused by:"
// chains.
func isBare(before string) bool { return strings.Trim(before, " \t0123456789:") == "" }

// isLabel reports that nothing but a label stands before an error, so that it
// is about the command as a whole.
func isLabel(before string) bool { return label.MatchString(before) }

var label = regexp.MustCompile(`^(?:[\w./-]+: ?|\S*Error: \[Errno \d+\] |\S*: line \d+: )*$`)

func quotedBefore(lines []string) []string {
	for _, line := range slices.Backward(lines) {
		if paths := quoted(line); len(paths) > 0 {
			return paths
		}
	}
	return nil
}

// pathsAround returns what may be paths, in the order in which the forms are
// reliable: quoted behind the error (Python, Node), quoted before it
// (coreutils), unquoted behind it (zsh, Ruby), unquoted before it.
func pathsAround(before, after string) []string {
	paths := append(quoted(after), quoted(before)...)
	if len(paths) > 0 {
		return paths
	}
	if path, ok := unquotedAfter(after); ok {
		return []string{path}
	}
	return unquotedBefore(before)
}

// quotes are the pairs of quotation marks in use. An apostrophe behind a letter
// opens nothing.
var quotes = regexp.MustCompile("(?:^|[^\\pL\\pN])'((?:[^']|'\\\\'')+)'|[\u2018\u201a]([^\u2018\u2019]+)[\u2018\u2019]|\"([^\"]+)\"|`([^`']+)[`']|\u201e([^\u201c\u201d]+)[\u201c\u201d]|«\\s*([^»]*\\S)\\s*»")

// quoted returns the quoted strings of a line that may be paths.
func quoted(line string) []string {
	var paths []string
	for _, m := range quotes.FindAllStringSubmatch(line, -1) {
		path := strings.ReplaceAll(strings.Join(m[1:], ""), `'\''`, `'`)
		if isPlausible(path) {
			paths = append(paths, path)
		}
	}
	return paths
}

var behind = regexp.MustCompile(`^(?:: |.* @ \w+ - )(\.{0,2}/\S*|~\S*)`)

func unquotedAfter(after string) (string, bool) {
	m := behind.FindStringSubmatch(after)
	if m == nil {
		return "", false
	}
	path := strings.TrimRight(m[1], ".,;")
	return path, isPlausible(path)
}

// verbs introduce a path without marks around it.
var verbs = regexp.MustCompile(`(?:^|[ :])(?:cannot|can't|could not|couldn't|unable to|failed to) (?:[a-z]+ ){1,5}(\S+)$|\bkann (?:\S+ ){0,2}(\S+) nicht (?:erstellen|öffnen|schreiben|anlegen)$`)

var (
	shellPrefix = regexp.MustCompile(`^(?:\S*/)?(?:ba|da|z|k|mk|a)?sh ?(?:: \pL+ \d+ ?|: \d+|:\d+)?$`)
	// namers are programs that print "program: name: error".
	namers = regexp.MustCompile(`^(?:\S*/)?(?:tee|touch|cp|sort|split|csplit|tar|sed|g?awk|mawk|dd|install|patch|gzip|xz|wget|truncate|ed|rm|mkdir|cat|head|tail|grep|egrep|wc|cmp|diff|od|cut|ls|find|shred|zip|unzip|cpio|rsync)$`)
)

// unquotedBefore reads "program: verb phrase path: error". The last part is
// taken whole, if it is a path with spaces, and otherwise word by word.
func unquotedBefore(before string) []string {
	before = strings.TrimRight(before, " (:[")
	prefix, last, colon := cutLast(before, ": ")
	if !colon {
		prefix, last = "", before
	}
	if rest, ok := strings.CutPrefix(last, "cannot create "); ok && shellPrefix.MatchString(prefix) && isPlausible(rest) {
		return []string{rest}
	}
	if first, path, ok := strings.Cut(prefix, ": "); ok && colon && namers.MatchString(first) && isPlausible(path) && !isRooted(last) {
		return []string{path} // program: path: what it could not do
	}
	if isRooted(last) && isPlausible(last) {
		return append([]string{last}, rootedWords(last)...)
	}
	if colon && isPlausible(last) && !strings.Contains(last, " /") && (shellPrefix.MatchString(prefix) || namers.MatchString(prefix)) {
		return []string{last}
	}
	if paths := rootedWords(last); len(paths) > 0 {
		return paths
	}
	if m := verbs.FindStringSubmatch(before); m != nil && isPlausible(m[1]+m[2]) {
		return []string{m[1] + m[2]}
	}
	return nil
}

// rootedWords returns the words that are certainly paths, the last first.
func rootedWords(text string) []string {
	var paths []string
	for _, word := range slices.Backward(strings.Fields(text)) {
		word = strings.Trim(word, ",;()[]")
		if isRooted(word) && isPlausible(word) && !slices.Contains(paths, word) {
			paths = append(paths, word)
		}
	}
	return paths
}

func isRooted(path string) bool {
	return strings.HasPrefix(path, "/") || strings.HasPrefix(path, "./") || strings.HasPrefix(path, "../") ||
		strings.Contains(path, "/") && !strings.Contains(path, "://") && !strings.Contains(path, " ") && !strings.Contains(path, "@")
}

// isPlausible keeps out what no file is called in practice.
func isPlausible(path string) bool {
	return path != "" && len(path) < 4096 && !strings.Contains(path, "://") &&
		!strings.ContainsFunc(path, func(r rune) bool { return r < ' ' })
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
