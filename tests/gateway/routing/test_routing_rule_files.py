"""Rules of one's own, and what is said of wrong ones (SPEC B1)."""

from pathlib import Path

import pytest

from gateway.routing.routing_agents import agent_of, decided, router
from xclaw.contracts.errors import UsageError
from xclaw.gateway.routing.rules import load_rules

AGENTS = {"reviewer": "", "writer": "", "optimizer": "", "skeptic": "", "coder": ""}
OWN = """
masks = ["coder dojo"]

[[rules]]
name = "java"
agent = "coder"
words = ["java", "爪哇"]
unless = ["coffee"]

[[rules]]
name = "data"
agent = "coder"
topics = ["data model", "数据模型"]

[[rules.asks]]
verbs = ["sketch", "勾画"]
objects = ["schema", "表结构"]
"""


def _file(directory: Path, text: str, name: str = "rules.toml") -> Path:
    path = directory / name
    path.write_text(text, "utf-8")
    return path


def test_rules_of_ones_own_come_first(tmp_path: Path) -> None:
    asked = router(load_rules([_file(tmp_path, OWN)]), AGENTS)
    assert decided("review my java code", asked).route.rule == "java"
    assert decided("用java写一个函数", asked).route.rule == "java"
    assert agent_of("review my javascript code", asked) == "reviewer"
    assert agent_of("don't touch java", asked) == "orchestrator"
    assert agent_of("what does java mean", asked) == "orchestrator"
    assert agent_of("java coffee", asked) == "orchestrator"
    assert agent_of("Write java code and review it", asked) == "orchestrator"
    assert agent_of("Is the data model ok?", asked) == "coder"
    assert agent_of("勾画一下表结构", asked) == "coder"
    assert agent_of("please sketch the schema", asked) == "coder"
    assert agent_of("sketch a cat", asked) == "orchestrator"


def test_a_rule_takes_the_place_of_one_with_its_name_and_off_takes_it_away(tmp_path: Path) -> None:
    text = '[[rules]]\nname = "review"\noff = true\n[[rules]]\nname = "security"\nagent = "coder"\nwords = ["xss"]\n'
    book = load_rules([_file(tmp_path, text)])
    assert [rule.name for rule in book.rules] == ["security", "documentation", "performance"]
    asked = router(book, AGENTS)
    assert agent_of("Review this function", asked) == "orchestrator"
    assert agent_of("any xss here?", asked) == "coder"


def test_a_later_file_comes_first(tmp_path: Path) -> None:
    first = _file(tmp_path, '[[rules]]\nname = "a"\nagent = "writer"\nwords = ["kiwi"]\n', "a.toml")
    second = _file(tmp_path, '[[rules]]\nname = "b"\nagent = "coder"\nwords = ["kiwi"]\n', "b.toml")
    assert agent_of("kiwi", router(load_rules([first, second]), AGENTS)) == "coder"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("rules = 3", ("`rules` should be tables",)),
        ("x = 1\ny = ,", ("no TOML", "line 2")),
        ("[words]\npolite = []", ("there is no `words`", "masks, rules")),
        ("[[rules]]\nagent = 'coder'", ("rule 1", "`name` should be a name")),
        ("[[rules]]\nname = 'a'\nwords = ['x']", ("rule 'a'", "`agent` should be a name")),
        ("[[rules]]\nname = 'a'\nagent = 'coder'", ("rule 'a'", "it matches nothing")),
        (
            "[[rules]]\nname = 'a'\nagent = 'coder'\nasks = [{verbs = ['x'], behind = ['y']}]",
            ("rule 'a'", "`behind` needs `objects`"),
        ),
        ("[[rules]]\nname = 'a'\nagent = 'coder'\nregex = 'x+'", ("rule 'a'", "there is no `regex`")),
        ("[[rules]]\nname = 'a'\nagent = 'coder'\nwords = 'x'", ("rule 'a'", "`words` should be a list")),
        ("[[rules]]\nname = 'a'\nagent = 'coder'\nwords = [1]", ("rule 'a'", "'1' in `words`")),
        ("[[rules]]\nname = 'a'\nagent = 'coder'\nwords = ['  ']", ("rule 'a'", "has no word in it")),
        (f"[[rules]]\nname = 'a'\nagent = 'coder'\nwords = ['{'x' * 200}']", ("rule 'a'", "at most 80")),
        ("[[rules]]\nname = 'a'\nagent = 'coder'\noff = 1", ("rule 'a'", "`off` should be true or false")),
        (
            "[[rules]]\nname = 'a'\nagent = 'c'\nasks = [{objects = ['x']}]",
            ("rule 'a'", "`verbs` is missing"),
        ),
        ("[[rules]]\nname = 'a'\nagent = 'c'\nasks = [{verb = ['x']}]", ("rule 'a'", "there is no `verb`")),
        ("[[rules]]\nname = 'a'\nagent = 'c'\nwords = ['x']\n" * 2, ("two rules are called 'a'",)),
        ("[[rules]]\nname = 'a\u0007'\nagent = 'c'\nwords = ['x']\n", ("no TOML",)),
    ],
)
def test_a_wrong_file_is_refused_with_file_rule_and_reason(
    tmp_path: Path, text: str, parts: tuple[str, ...]
) -> None:
    path = _file(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        load_rules([path])
    assert str(path) in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


def test_a_file_that_is_missing_huge_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        load_rules([tmp_path / "none.toml"])
    with pytest.raises(UsageError, match="256,000 bytes"):
        load_rules([_file(tmp_path, "#" * 300_000)])
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="UTF-8"):
        load_rules([tmp_path / "b.toml"])


def test_signs_that_mean_something_elsewhere_are_only_words(tmp_path: Path) -> None:
    """Words are no patterns: nothing that a user writes can make routing slow."""
    text = '[[rules]]\nname = "a"\nagent = "coder"\nwords = ["(a+)+$ b", "zebra.*"]\n'
    asked = router(load_rules([_file(tmp_path, text)]), AGENTS)
    assert agent_of("a" * 5_000, asked) == "orchestrator"
