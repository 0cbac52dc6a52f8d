package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fileSystem names the file system that holds path.
func fileSystem(path string) string {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return err.Error()
	}
	names := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.TMPFS_MAGIC: "tmpfs", unix.XFS_SUPER_MAGIC: "xfs",
		unix.BTRFS_SUPER_MAGIC: "btrfs", unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
	}
	if name, ok := names[int64(s.Type)]; ok {
		return name
	}
	return fmt.Sprintf("file system %#x", s.Type)
}
