#!/bin/sh
# The guest's first process: makes the root that commands will see, of nothing but programs, and becomes the
# agent in it. What is the agent's own lies in /xclaw, which only the guest's root may enter.
export PATH=/bin
busybox mount -t proc proc /proc
busybox mount -t devtmpfs devtmpfs /dev
while read -r module; do
  busybox insmod "/modules/$module" || echo "xclaw: $module could not be loaded"
done < /modules/order
busybox mount -t squashfs -o ro /dev/vda /lower || echo "xclaw: no root file system"

busybox mount -t tmpfs -o nosuid,nodev,mode=0755,size=4m tmpfs /root
cd /root
busybox mkdir usr etc dev proc tmp var workspace input xclaw
busybox chmod 700 xclaw
busybox mount -o bind /lower/usr usr
busybox mount -o remount,bind,ro,nosuid,nodev usr
for name in bin sbin lib lib32 lib64 libx32; do
  if busybox test -h "/lower/$name"; then
    busybox cp -P "/lower/$name" "$name"
  fi
done
busybox ln -s ../tmp var/tmp
for name in alternatives ld.so.cache localtime magic magic.mime mime.types; do
  if busybox test -e "/lower/etc/$name"; then
    busybox cp -a "/lower/etc/$name" "etc/$name"
  fi
done
echo "127.0.0.1 localhost sandbox" > etc/hosts
echo "hosts: files" > etc/nsswitch.conf

busybox mkdir xclaw/sys xclaw/dev xclaw/cgroup
busybox mount -t sysfs -o nosuid,nodev,noexec sysfs xclaw/sys
busybox mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 xclaw/cgroup
busybox umount /proc
busybox mount -t proc -o nosuid,nodev,noexec,hidepid=2 proc proc
busybox mount -t tmpfs -o nosuid,nodev,mode=1777,size=16m tmpfs tmp
busybox mount -t tmpfs -o nosuid,noexec,mode=0755,size=64k tmpfs dev
for node in "null 3" "zero 5" "full 7" "random 8" "urandom 9"; do
  busybox mknod -m 666 "dev/${node% *}" c 1 "${node#* }"
done
busybox mknod -m 666 dev/tty c 5 0
busybox mkdir dev/pts dev/shm
busybox mount -t devpts -o nosuid,noexec,newinstance,mode=0620,ptmxmode=0666 devpts dev/pts
busybox mount -t tmpfs -o nosuid,nodev,mode=1777,size=64m tmpfs dev/shm
busybox ln -s pts/ptmx dev/ptmx
busybox ln -s /proc/self/fd dev/fd
for stream in "stdin 0" "stdout 1" "stderr 2"; do
  busybox ln -s "/proc/self/fd/${stream#* }" "dev/${stream% *}"
done

busybox ip link set lo up
busybox hostname sandbox
for setting in user/max_user_namespaces=0 kernel/unprivileged_bpf_disabled=1 kernel/dmesg_restrict=1 \
  kernel/kptr_restrict=2 kernel/yama/ptrace_scope=2 kernel/perf_event_paranoid=3 kernel/core_pattern=/dev/null \
  fs/inotify/max_user_instances=64 fs/protected_hardlinks=1 fs/protected_symlinks=1; do
  target=proc/sys/${setting%%=*}
  if busybox test -e "$target"; then
    echo "${setting#*=}" > "$target"
  fi
done
busybox mount --move /dev xclaw/dev
busybox cp -r /agent xclaw/agent
exec busybox switch_root -c /xclaw/dev/console /root /usr/bin/python3 -I -S -c \
  'import sys; sys.path.insert(0, "/xclaw/agent"); from xclaw.sandbox.kvm.guest_agent import main; main()'
