"""Numbers of the system calls that commands may not make, or only in part (standard library only)."""

from collections.abc import Mapping

ARCHITECTURES: Mapping[str, int] = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""By machine: AUDIT_ARCH."""
FIRST_UNKNOWN = 463
"""Calls from here on came after this list was made. Programs do without them, or must."""

# name: (x86_64, aarch64); None where the machine has no such call.
REFUSED: Mapping[str, tuple[int | None, int | None]] = {
    # The kernel: its modules, clocks, logs, counters, programs of its own.
    "acct": (163, 89), "adjtimex": (159, 171), "bpf": (321, 280), "clock_adjtime": (305, 266),
    "clock_settime": (227, 112), "create_module": (174, None), "delete_module": (176, 106),
    "finit_module": (313, 273), "get_kernel_syms": (177, None), "init_module": (175, 105),
    "ioperm": (173, None), "iopl": (172, None), "kexec_file_load": (320, 294), "kexec_load": (246, 104),
    "lookup_dcookie": (212, 18), "modify_ldt": (154, None), "nfsservctl": (180, 42),
    "perf_event_open": (298, 241), "query_module": (178, None), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "reboot": (169, 142), "settimeofday": (164, 170), "swapoff": (168, 225),
    "swapon": (167, 224), "_sysctl": (156, None), "sysfs": (139, None), "syslog": (103, 116),
    "uselib": (134, None), "userfaultfd": (323, 282), "ustat": (136, None), "vhangup": (153, 58),
    "vserver": (236, None), "sethostname": (170, 161), "setdomainname": (171, 162),
    # Another view of the file system or of other processes.
    "chroot": (161, 51), "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433),
    "kcmp": (312, 272), "listmount": (458, 458), "migrate_pages": (256, 238), "mount": (165, 40),
    "mount_setattr": (442, 442), "move_mount": (429, 429), "move_pages": (279, 239),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "open_tree": (428, 428),
    "pidfd_getfd": (438, 438), "pivot_root": (155, 41), "process_madvise": (440, 440),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "ptrace": (101, 117),
    "setns": (308, 268), "statmount": (457, 457), "umount2": (166, 39), "unshare": (272, 97),
    # Keys outlive namespaces; rings of input and output go around this filter; secret memory is not counted.
    "add_key": (248, 217), "keyctl": (250, 219), "request_key": (249, 218),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "io_uring_setup": (425, 425),
    "memfd_secret": (447, 447),
}  # fmt: skip

MISSING: Mapping[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435),
    "io_setup": (206, 0),
    "openat2": (437, 437),
}
"""Programs take an older call instead. The arguments of two lie in memory, where a filter cannot look; what
`io_setup` makes is taken from what all users have together."""

UNSUPPORTED: Mapping[str, tuple[int | None, int | None]] = {"fallocate": (285, 47)}
"""As on a file system that has no such thing: programs write instead. It takes up any amount of disk in no time,
between two looks."""

UNCOUNTED: Mapping[str, tuple[int | None, int | None]] = {
    "msgget": (68, 186),
    "semget": (64, 190),
    "shmget": (29, 194),
}
"""What they make belongs to no process: refused where no control group counts it."""

PLACING: Mapping[str, tuple[int | None, int | None]] = {"sched_setaffinity": (203, 122)}
"""Refused where the processors are what bounds the processor time."""

CLONE = (56, 220)
IOCTL = (16, 29)
CLOSE_RANGE = (436, 436)
SOCKETS: Mapping[str, tuple[int | None, int | None]] = {"socket": (41, 198), "socketpair": (53, 199)}
MODES: Mapping[str, tuple[int | None, int | None, int]] = {
    "chmod": (90, None, 1), "fchmod": (91, 52, 1), "fchmodat": (268, 53, 2), "fchmodat2": (452, 452, 2),
    "creat": (85, None, 1), "mknod": (133, None, 1), "mknodat": (259, 33, 2),
}  # fmt: skip
"""Calls that give a file its mode, and which argument it is."""
OPENING: Mapping[str, tuple[int | None, int | None, int, int]] = {
    "open": (2, None, 1, 2),
    "openat": (257, 56, 2, 3),
}
"""Calls that may give a file its mode: which arguments are the flags and the mode."""
