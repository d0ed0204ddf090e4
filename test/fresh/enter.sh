#!/bin/sh
# Process 1 of a fresh machine: makes a root file system the root of namespaces that are new already, then runs a
# command there. Until pivot_root it runs with the programs of the machine around it, afterwards with those of the root.
#
#   enter.sh ROOT HOSTNAME COMMAND...
#
# Standard input: one line per cgroup hierarchy, "TYPE OPTIONS DIRECTORY", then "go" once the network is there.
set -eu
root=$1
name=$2
shift 2

mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir -m 1777 "$root/run/lock"

echo entered
while read -r type options directory; do
  [ "$type" != go ] || break
  # Below the tmpfs that holds several hierarchies, or directly where there is one alone.
  if [ "$directory" != /sys/fs/cgroup ] && ! grep -q " $root/sys/fs/cgroup " /proc/self/mountinfo; then
    mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
  fi
  mkdir -p "$root$directory"
  mount -t "$type" -o "$options" cgroup "$root$directory"
done

hostname "$name"
printf '%s\n' "$name" >"$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 %s\n::1 localhost ip6-localhost\n' "$name" >"$root/etc/hosts"

cd "$root"
mkdir -p .outside
pivot_root . .outside
cd /
umount -l /.outside
rmdir /.outside
# As on a machine started by systemd: mounts of pods with mountPropagation reach the host.
mount --make-rshared /

# This shell stays process 1 and collects orphans while it waits.
status=0
"$@" </dev/null || status=$?
exit "$status"
