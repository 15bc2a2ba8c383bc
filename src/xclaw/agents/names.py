"""How a name that a model or a person wrote is matched with an agent's."""

import re
import unicodedata
from functools import lru_cache

NAME_CHARACTERS = 120
"""The longest name of an agent."""
FOLDED_CHARACTERS = 400
"""How much of a written name is looked at: more is no name."""

_LABEL = re.compile(r"""^(?:role|agent|worker|name|角色|专家|代理)["'`]?\s*[:=]\s*""")
_MARKDOWN_ESCAPE = re.compile(r"\\([^\w\s])|\\(?=_)")
_SEPARATORS = re.compile(r"[\s_\-]+")
_EDGES = " \t\r\n\"'`“”‘’„«»「」『』〈〉《》【】[](){}<>@*~|,;:.!?、。，；：！？\\-_"


def agent_key(name: str) -> str:
    """The form in which two names of the same agent are equal; empty when there is no name in it.

    Folded are: compatibility forms (full-width letters), case, quotes, brackets and list syntax around
    the name, "@", a label such as "Role:", Markdown emphasis and escapes, invisible characters, and the
    difference between space, "-" and "_" inside the name.
    """
    return _folded(name[:FOLDED_CHARACTERS])


@lru_cache(maxsize=512)  # asked for several times in each run, always of the same few names
def _folded(name: str) -> str:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    text = "".join(character for character in text if unicodedata.category(character) != "Cf")
    text = _MARKDOWN_ESCAPE.sub(lambda match: match.group(1) or "", text)
    previous = None
    while text != previous:
        previous = text
        text = _LABEL.sub("", text.strip(_EDGES))
    return _SEPARATORS.sub(" ", text)


def name_fault(name: str) -> str | None:
    """Why `name` cannot be an agent's name, or None."""
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        return "has a control character in it"
    if len(name) > NAME_CHARACTERS:
        return f"is longer than {NAME_CHARACTERS} characters"
    if not agent_key(name):
        return "has no letter or digit in it"
    return None
