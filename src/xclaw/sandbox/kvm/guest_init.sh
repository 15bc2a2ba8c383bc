#!/bin/sh
# The guest's first process: from the initrd to the read-only root, then it becomes the agent.
export PATH=/bin
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs devtmpfs /dev
while read -r module; do
  busybox insmod "/modules/$module" || echo "xclaw: $module could not be loaded"
done < /modules/order
busybox mount -t squashfs -o ro,nosuid,nodev /dev/vda /lower || echo "xclaw: no root file system"
busybox mount -t tmpfs -o size=8m,mode=0755 tmpfs /upper
busybox mkdir /upper/data /upper/work
busybox mount -t overlay -o nosuid,nodev,lowerdir=/lower,upperdir=/upper/data,workdir=/upper/work overlay /root
busybox mkdir -p /root/proc /root/sys /root/dev /root/run /root/tmp
busybox umount /proc
busybox mount -t proc -o nosuid,nodev,noexec,hidepid=2 proc /root/proc
busybox mount --move /sys /root/sys
busybox mount --move /dev /root/dev
busybox mount -t tmpfs -o nosuid,nodev,mode=0755,size=4m tmpfs /root/run
busybox mkdir /root/dev/pts /root/dev/shm
busybox mount -t devpts -o nosuid,noexec,mode=0620,ptmxmode=0666 devpts /root/dev/pts
busybox mount -t tmpfs -o nosuid,nodev,mode=1777,size=16m tmpfs /root/tmp
busybox mount -t tmpfs -o nosuid,nodev,mode=1777,size=64m tmpfs /root/dev/shm
busybox rm -rf /root/var/tmp /root/dev/ptmx
busybox ln -s /tmp /root/var/tmp
busybox ln -s pts/ptmx /root/dev/ptmx
busybox ln -s /proc/self/fd /root/dev/fd
busybox ln -s /proc/self/fd/0 /root/dev/stdin
busybox ln -s /proc/self/fd/1 /root/dev/stdout
busybox ln -s /proc/self/fd/2 /root/dev/stderr
busybox mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 /root/sys/fs/cgroup
busybox ip link set lo up
busybox hostname sandbox
for setting in user/max_user_namespaces=0 kernel/unprivileged_bpf_disabled=1 kernel/dmesg_restrict=1 \
  kernel/kptr_restrict=2 kernel/yama/ptrace_scope=2 kernel/perf_event_paranoid=3 vm/overcommit_memory=0 \
  kernel/core_pattern=/dev/null fs/protected_hardlinks=1 fs/protected_symlinks=1; do
  target=/root/proc/sys/${setting%%=*}
  if busybox test -e "$target"; then
    echo "${setting#*=}" > "$target"
  fi
done
busybox mkdir /root/run/xclaw
busybox chmod 700 /root/run/xclaw
busybox cp /agent.py /root/run/xclaw/agent.py
exec busybox switch_root /root /usr/bin/python3 -I -S /run/xclaw/agent.py
