"""The first process of a command inside, and what it reports (standard library only)."""

FIRST = """
ulimit -u "$1" 2>/dev/null || ulimit -p "$1"
cd -- "$2" 2>/dev/null || { echo "c there is no directory $2" >&3; exit 1; }
shift 2
command -v -- "$1" >/dev/null 2>&1 || { echo "c there is no program $1" >&3; exit 127; }
echo s >&3
exec 4>&2 2>/dev/null
( unset PWD OLDPWD; exec 2>&4 3>&- 4>&-; exec "$@" )
code=$?
left=0
for entry in /proc/[0-9]*; do
  [ "$entry" != /proc/1 ] || continue
  state=
  { read -r _; read -r _; read -r _ state _; } <"$entry/status"
  case $state in ''|Z|X) ;; *) left=$((left + 1)) ;; esac
done
echo "e $left" >&3
exit $code
"""
"""The first process inside: says that it is there, runs the command, counts what is left. Nothing inside can
end it, and its end is the end of everything."""
REPORT_BYTES = 4_096
"""As much of a report is read, and kept."""
_SHOWN = 500


class Report:
    """What it has said so far, through descriptor 3. A stranger can write to that, too."""

    def __init__(self) -> None:
        self._said = bytearray()

    def add(self, said: bytes) -> None:
        self._said += said[: REPORT_BYTES - len(self._said)]

    @property
    def began(self) -> bool:
        return b"s" in self._lines()

    @property
    def hindrance(self) -> str:
        """Why the command could not be started; "" if it was."""
        for line in self._lines():
            if line.startswith(b"c "):
                return line[2:].decode("utf-8", "replace")[:_SHOWN]
        return ""

    @property
    def left_behind(self) -> int:
        for line in self._lines():
            number = line[2:]
            if line.startswith(b"e ") and number.isdigit() and len(number) < 6:
                return int(number)
        return 0

    def _lines(self) -> list[bytes]:
        return bytes(self._said).split(b"\n")
