//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sockets in the file system can be connected to whatever is mounted read-only,
// and these lead to somebody who acts on a command's behalf outside: engines of
// containers and virtual machines, buses, service managers, terminals that take
// input, display servers, editors. Patterns of filepath.Glob.
var (
	leadingSockets = []string{
		"/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock",
		"/run/k3s/containerd/containerd.sock", "/run/buildkit/buildkitd.sock", "/run/snapd.socket",
		"/run/libvirt/libvirt-sock", "/run/libvirt/virtqemud-sock", "/var/lib/lxd/unix.socket", "/var/snap/lxd/common/lxd/unix.socket",
		"/var/lib/incus/unix.socket", "/run/incus/unix.socket",
		"/run/systemd/private", "/run/dbus/system_bus_socket",
		"/run/user/*/bus", "/run/user/*/systemd/private", "/run/user/*/docker.sock", "/run/user/*/podman/podman.sock",
		"/run/user/*/containerd/containerd.sock", "/run/user/*/wayland-[0-9]", "/run/user/*/vscode-ipc-*.sock", "/run/user/*/nvim.*",
		"~/.docker/run/docker.sock", "~/.docker/desktop/docker.sock", "~/.colima/*/docker.sock", "~/.rd/docker.sock",
	}
	// leadingDirs hold such sockets under names that are not known before.
	leadingDirs = []string{
		"/tmp/tmux-*", "/run/screen", "/tmp/screens", "/run/user/*/emacs", "/tmp/emacs*", "/tmp/.X11-unix", "~/.screen",
	}
)

// sockets are what is to be hidden from a command.
type sockets struct{ files, dirs []string }

// socketsOf finds the sockets of this host, those that the environment names
// included. A link counts as what it leads to.
func socketsOf(env []string) sockets {
	home := valueOf(env, "HOME")
	var s sockets
	for _, path := range append(globAll(leadingSockets, home), namedSockets(env)...) {
		if info, err := os.Stat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			s.files = append(s.files, path)
		}
	}
	dirs := globAll(leadingDirs, home)
	if dir := valueOf(env, "TMUX_TMPDIR"); filepath.IsAbs(dir) {
		dirs = append(dirs, globAll([]string{filepath.Join(dir, "tmux-*")}, home)...)
	}
	if dir := valueOf(env, "SCREENDIR"); filepath.IsAbs(dir) {
		dirs = append(dirs, resolvePath("/", dir))
	}
	for _, path := range dirs {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			s.dirs = append(s.dirs, path)
		}
	}
	s.files, s.dirs = sortedOnce(s.files), sortedOnce(s.dirs)
	s.files = slices.DeleteFunc(s.files, func(file string) bool {
		return slices.ContainsFunc(s.dirs, func(dir string) bool { return strings.HasPrefix(file, dir+"/") })
	})
	return s
}

func sortedOnce(list []string) []string {
	slices.Sort(list)
	return slices.Compact(list)
}

// globAll returns what matches, with links followed.
func globAll(patterns []string, home string) []string {
	var found []string
	for _, pattern := range patterns {
		if rest, inHome := strings.CutPrefix(pattern, "~"); inHome {
			if !filepath.IsAbs(home) {
				continue
			}
			pattern = filepath.Clean(home) + rest
		}
		paths, _ := filepath.Glob(pattern) // the only error is a bad pattern, as an odd HOME may make one
		for _, path := range paths {
			found = append(found, resolvePath("/", path))
		}
	}
	return found
}

// namedSockets are those that variables point to.
func namedSockets(env []string) []string {
	var paths []string
	add := func(path string) {
		if filepath.IsAbs(path) {
			paths = append(paths, resolvePath("/", path))
		}
	}
	for _, name := range []string{"DOCKER_HOST", "CONTAINER_HOST", "PODMAN_HOST"} {
		if path, ok := strings.CutPrefix(valueOf(env, name), "unix://"); ok {
			add(path)
		}
	}
	for _, name := range []string{"DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"} {
		for _, part := range strings.FieldsFunc(valueOf(env, name), func(r rune) bool { return r == ';' || r == ',' }) {
			if path, ok := strings.CutPrefix(part, "unix:path="); ok {
				add(path)
			}
		}
	}
	tmux, _, _ := strings.Cut(valueOf(env, "TMUX"), ",")
	add(tmux)
	add(valueOf(env, "VSCODE_IPC_HOOK_CLI"))
	add(valueOf(env, "NVIM"))
	return paths
}

func valueOf(env []string, name string) string {
	return strings.TrimPrefix(lastEntry(env, name+"="), name+"=")
}

// masks are the options that put nothing in the place of sockets: the null
// device, which refuses connections, and empty directories that can be used.
func masks(s sockets) []string {
	var args []string
	for _, dir := range s.dirs {
		mode := "0700"
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o077 != 0 {
			mode = "1777"
		}
		args = append(args, "--perms", mode, "--tmpfs", dir)
	}
	for _, file := range s.files {
		args = append(args, "--ro-bind", "/dev/null", file)
	}
	return args
}
