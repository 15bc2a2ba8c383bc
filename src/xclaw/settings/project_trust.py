"""What a project's file may not decide: it may come with a repository that somebody else wrote."""

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from xclaw.settings.shape import Key, dotted
from xclaw.settings.sources import USER_FILE, Setting

USERS_ONLY: tuple[Key, ...] = (("runtime", "allow_shell"),)
"""It would let a file that came with a repository run commands; so would all of `embedded`."""
ADDED: tuple[Key, ...] = (("permissions", "ask"), ("permissions", "deny"), ("project", "deny"))
"""Lists to which a project's file adds, instead of replacing what the user has."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def trusted(project: Sequence[Setting], others: Iterable[Setting], warnings: list[str]) -> list[Setting]:
    """The project's settings without those that only the user may make; says which were left out.

    An endpoint on another machine is left out when it would be sent a key that the project file does
    not itself hold.
    """
    keys = {setting.key for setting in others if setting.key[-1] == "api_key"}
    keys |= {
        setting.key
        for setting in project
        if setting.key[-1] == "api_key" and str(setting.value).startswith("$")
    }
    kept: list[Setting] = []
    for setting in project:
        reason = _refusal(setting, keys)
        if reason:
            warnings.append(
                f"{setting.source}: `{dotted(setting.key)}` is ignored: {reason}. "
                f"To allow it, set it in your own {USER_FILE}, by environment or by flag."
            )
        else:
            kept.append(setting)
    return kept


def _refusal(setting: Setting, outside_keys: set[Key]) -> str:
    if (setting.key in USERS_ONLY or setting.key[0] == "embedded") and setting.value is not False:
        return "a project file may not decide what runs on your machine"
    if setting.key[0] == "sandbox" or (setting.key == ("workspace", "mode") and setting.value != "full"):
        return "a project file may not decide what keeps commands in"
    if setting.key[0] == "project" and setting.key not in ADDED:
        return "a project file may not decide which of your files agents see"
    if setting.key[0] == "gateway":
        return "a project file may not decide who reaches your gateway"
    if setting.key[0] == "permissions" and setting.key not in ADDED:
        return "a project file may only add to `permissions.ask` and `permissions.deny`"
    if setting.key in (("memory", "root"), ("memory", "scratchpads")):
        return "a project file may not decide what your agents remember, or where"
    if setting.key[0] == "traces" and setting.value:
        return "a project file may not decide where your traces go, or what is in them"
    if _leads_a_key_away(setting, outside_keys):
        return "it would send your API key to an endpoint that a project file names"
    return ""


def _leads_a_key_away(setting: Setting, outside_keys: set[Key]) -> bool:
    if setting.key[-1] != "base_url" or (*setting.key[:-1], "api_key") not in outside_keys:
        return False
    try:
        host = urlsplit(str(setting.value)).hostname
    except ValueError:
        host = None
    return host not in LOOPBACK
