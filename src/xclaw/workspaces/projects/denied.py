"""Names that no worker is shown and nobody commits: secrets, and what only git may write."""

import re
import unicodedata
from collections.abc import Sequence
from fnmatch import fnmatchcase

_DIRECTORIES = frozenset(
    [
        ".aws",
        ".azure",
        ".env",
        ".gcloud",
        ".gnupg",
        ".kube",
        ".password-store",
        ".secrets",
        ".ssh",
        ".terraform",
        ".hg",
        ".svn",
        ".bzr",
        ".cvs",
    ]
)
_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.gpg"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "id_xmss*", "*_rsa", "*_ed25519", "*_ecdsa", "*_dsa"),
    *(
        "credentials*",
        ".credentials*",
        "secrets.*",
        ".secrets*",
        "secret.*",
        ".htpasswd",
        ".pgpass",
        ".my.cnf",
    ),
    *(".s3cfg", ".boto", ".dockercfg", ".dockerconfigjson", "kubeconfig", "*.kubeconfig", ".vault-token"),
    *("service-account*.json", "service_account*.json", "*.tfstate", "*.tfstate.*", "*.tfvars"),
    *(".terraformrc", "terraform.rc", ".yarnrc.yml", ".*_history", ".env-*", ".env_*", ".dev.vars"),
    *("*.p8", "*.pk8", "*.keytab", "*.keychain", "*.keychain-db", "*.ovpn", "kubeconfig.*", ".authinfo"),
    *(".vault_pass*", ".vault-pass*", "pgpass.conf", "rclone.conf", "cookies.txt", "auth.json", "token.json"),
    *("client_secret*.json", "*firebase-adminsdk*.json", "local.settings.json"),
    *("*secrets.json", "*secrets.yml", "*secrets.yaml", "*secrets.toml"),
)
_PATHS = ("*.docker/config.json", "*.config/gcloud/*", "*.config/gh/*", "*.config/git/credentials")
_EXAMPLES = frozenset(("example", "sample", "template", "dist", "defaults"))
_EXAMPLE_KINDS = frozenset(
    ("json", "yml", "yaml", "toml", "ini", "cfg", "conf", "properties", "env", "local", "txt", "tfvars", "j2")
)
_COPY = re.compile(
    r"(~|\.(bak|backup|old|orig|save|sw[nop]|tmp|copy|disabled|\d+)|[ _-]copy|\(\d+\)|[. ]+|#)$"
)
"""What people and editors put behind the name of a file that they keep another version of."""
_SOURCES = (
    *(
        ".py",
        ".pyi",
        ".js",
        ".jsx",
        ".ts",
        ".tsx",
        ".go",
        ".rs",
        ".java",
        ".kt",
        ".rb",
        ".php",
        ".cs",
        ".c",
        ".h",
    ),
    *(
        ".cc",
        ".cpp",
        ".hpp",
        ".swift",
        ".scala",
        ".ex",
        ".exs",
        ".md",
        ".rst",
        ".html",
        ".css",
        ".vue",
        ".svelte",
    ),
)
_HOLDERS = frozenset(("credentials", "secrets"))
"""Directories that may be of secrets or of code about them."""
_CODE_PREFIXES = ("credentials", ".credentials", "secrets.", "secret.")
_HFS_IGNORES = frozenset(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF],
)


def is_git_internal(name: str) -> bool:
    """`.git`, and what some file system takes for it: case, a short name, trailing dots and spaces, a stream,
    letters that are not there."""
    visible = "".join(letter for letter in name if ord(letter) not in _HFS_IGNORES)
    folded = unicodedata.normalize("NFC", visible).casefold()
    plain = folded.split(":", 1)[0].rstrip(". ")
    if plain in (".git", "git~1") or folded.split("\\")[0].rstrip(". ") in (".git", "git~1"):
        return True
    return any(part.rstrip(". ") in (".git", "git~1") for part in folded.split("\\"))


def is_denied(path: str, deny: Sequence[str] = (), allow: Sequence[str] = ()) -> bool:
    """Whether a path of a project, with `/`, is not for workers."""
    folded = path.casefold()
    parts = folded.split("/")
    if any(is_git_internal(part) for part in path.split("/")):
        return True
    if _fits(folded, parts[-1], allow):
        return False
    if _fits(folded, parts[-1], deny) or any(_fits(part, part, deny) for part in parts[:-1]):
        return True
    if not _DIRECTORIES.isdisjoint(parts[:-1]) or any(fnmatchcase(folded, pattern) for pattern in _PATHS):
        return True
    if not _HOLDERS.isdisjoint(parts[:-1]):
        return not parts[-1].endswith(_SOURCES)
    return any(_is_secret(name) for name in (parts[-1], _original(parts[-1])))


def _is_secret(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in _NAMES) and not _is_harmless(name)


def _original(name: str) -> str:
    """Of a copy, the name of what it is a copy of."""
    name = name.removeprefix("#").removeprefix(".#")
    while len(shorter := _COPY.sub("", name)) < len(name):
        name = shorter
    return f".{name.lstrip('.')}" if name.startswith("..") else name


def _fits(path: str, name: str, patterns: Sequence[str]) -> bool:
    return any(
        fnmatchcase(path, (folded := pattern.casefold().strip("/"))) or fnmatchcase(name, folded)
        for pattern in patterns
    )


def _is_harmless(name: str) -> bool:
    """Public halves, examples, and source code about secrets."""
    kind, last = ("", "", *name.lstrip(".").split(".")[1:])[-2:]
    if last == "pub" or last in _EXAMPLES or (kind in _EXAMPLES and last in _EXAMPLE_KINDS):
        return True
    return name.startswith(_CODE_PREFIXES) and name.endswith(_SOURCES)
