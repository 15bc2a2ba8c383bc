"""Which simple commands a shell command line consists of. When in doubt there is no answer, and no rule
that lets a command run can match."""

import re
import shlex
from dataclasses import dataclass

_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_SEPARATORS = ("&&", "||", "|&", ";", "|", "&", "\n")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=")
_OPAQUE = frozenset("`$\\<>(){}#!*?[]~^")
"""Outside of quotes these make words into something else than they look like."""
_ONLY_FIRST = frozenset("~^!#")
"""Harmless inside of a word."""
_HARMLESS = re.compile(r"(?:2>&1|[12]?> ?/dev/null)(?=[\s;|&]|\Z)")
_STARTERS = frozenset(
    [
        "sudo",
        "doas",
        "env",
        "nohup",
        "time",
        "timeout",
        "nice",
        "ionice",
        "setsid",
        "stdbuf",
        "command",
        "exec",
        "eval",
        "builtin",
        "xargs",
        "watch",
        "busybox",
        "bash",
        "sh",
        "dash",
        "zsh",
        "ksh",
        "fish",
        "ssh",
        "su",
        "chroot",
        "unshare",
        "nsenter",
        "setpriv",
        "pkexec",
        "run0",
        "runuser",
        "sg",
        "systemd-run",
        "flock",
        "taskset",
        "chrt",
        "numactl",
        "prlimit",
        "strace",
        "ltrace",
        "fakeroot",
        "rlwrap",
        "start-stop-daemon",
        "!",
        "find",
        "parallel",
        "script",
        "trap",
        "source",
        ".",
        "if",
        "then",
        "elif",
        "else",
        "while",
        "until",
        "do",
        "for",
        "case",
        "select",
        "coproc",
        "function",
    ]
)
"""Programs and words that run what stands behind them."""
LINE_CHARS = 20_000
"""Longer ones are not read."""
_DEPTH = 3
_WORDS = 64
"""Of a starter's words, how many may begin what it starts."""


@dataclass(frozen=True, slots=True)
class Simple:
    """One command between separators."""

    words: tuple[str, ...]
    text: str
    """As it was written, without what stands around it."""

    @property
    def canonical(self) -> str:
        """The words, each quoted where it has to be: two commands are the same when these are."""
        return shlex.join(self.words)


def split_command(line: str) -> tuple[Simple, ...] | None:
    """The simple commands of a line, in order; None when a plain reading does not tell.

    Substitutions, expansions, globs, redirections (but for the usual ones to nowhere), subshells,
    comments, escapes and control characters are not read.
    """
    if len(line) > LINE_CHARS or _UNREADABLE.search(line) or not line.strip():
        return None
    commands: list[Simple] = []
    scanner = _Scanner(line)
    while not scanner.at_end:
        simple = scanner.simple()
        if simple is None or not scanner.separator():
            return None
        commands.append(simple)
    return tuple(commands)


def spoken_of(line: str, depth: int = 0) -> list[str]:
    """Every command that a line may run, for rules that forbid: assignments and directories of programs
    left out, what a starter such as `sudo` or `bash -c` runs too. More rather than fewer."""
    found: list[str] = []
    for part in re.split(r"&&|\|\||[;|&\n(){}`]|\$\(", line[:LINE_CHARS]):
        words = _words_of(part)
        while words and _ASSIGNMENT.match(words[0]):
            words = words[1:]
        if words:
            found += [_named(words), part.strip()]
            found += _started(words, depth)
    return found


def _started(words: list[str], depth: int) -> list[str]:
    """What a program that runs others may run."""
    if words[0].rpartition("/")[2] not in _STARTERS:
        return []
    found = [_named(words[at:]) for at in range(1, min(len(words), _WORDS))]
    if depth < _DEPTH:
        for word in words[1:_WORDS]:
            if re.search(r"[\s;|&]", word):
                found += spoken_of(word, depth + 1)
    return found


def _named(words: list[str]) -> str:
    return " ".join([words[0].rpartition("/")[2] or words[0], *words[1:]])


def _words_of(part: str) -> list[str]:
    try:
        return shlex.split(part)
    except ValueError:  # quotes that do not close in this part
        return re.sub(r"[\"'\\]", "", part).split()


class _Scanner:
    """Reads a line from left to right."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._line)

    def simple(self) -> Simple | None:
        """The next command, up to a separator; None when it cannot be read."""
        words: list[str] = []
        self._blanks()
        begin = end = self._at
        while not self.at_end and not self._separator_here():
            harmless = _HARMLESS.match(self._line, self._at)
            if harmless and words:
                self._at = harmless.end()
            else:
                word = self._word()
                if word is None or (not words and not _plain_program(word)):
                    return None
                words.append(word)
                end = self._at
            self._blanks()
        return Simple(tuple(words), self._line[begin:end]) if words else None

    def separator(self) -> bool:
        """Pass one separator; false where the line ends in one that something must follow."""
        if self.at_end:
            return True
        found = self._separator_here()
        self._at += len(found)
        while self._line[self._at : self._at + 1] in (" ", "\t", "\n") and not self.at_end:
            self._at += 1
        return not self.at_end or found in (";", "&", "\n")

    def _blanks(self) -> None:
        while self._line[self._at : self._at + 1] in (" ", "\t") and not self.at_end:
            self._at += 1

    def _separator_here(self) -> str:
        return next((mark for mark in _SEPARATORS if self._line.startswith(mark, self._at)), "")

    def _word(self) -> str | None:
        letters: list[str] = []
        begin = self._at
        while not self.at_end:
            letter = self._line[self._at]
            if letter in " \t" or self._separator_here():
                break
            if letter in "'\"":
                quoted = self._quoted(letter)
                if quoted is None:
                    return None
                letters.append(quoted)
                continue
            if letter in _OPAQUE and (letter not in _ONLY_FIRST or self._at == begin):
                return None
            letters.append(letter)
            self._at += 1
        return "".join(letters)

    def _quoted(self, mark: str) -> str | None:
        end = self._line.find(mark, self._at + 1)
        if end < 0:
            return None
        text = self._line[self._at + 1 : end]
        self._at = end + 1
        if mark == '"' and re.search(r"[`$\\!]", text):
            return None
        return text


def _plain_program(word: str) -> bool:
    """A word that names a program, and neither assigns nor begins something compound."""
    return bool(word) and not _ASSIGNMENT.match(word) and not re.search(r"\s", word)
