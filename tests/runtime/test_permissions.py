"""Which calls rules and modes let run: never more than the words of a rule say (SPEC J1)."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from xclaw.contracts.agents import Agent
from xclaw.contracts.errors import UsageError
from xclaw.contracts.permissions import Effect, Level, PermissionMode, Permissions, Rules, parse_rule
from xclaw.runtime.permissions import (
    PermissionSettings,
    decide,
    effective_mode,
    names_tool,
    narrowed,
    settings_level,
)
from xclaw.runtime.rules import Call, exact_rule, matching
from xclaw.runtime.shell_commands import split_command


def chain(
    allow: tuple[str, ...] = (),
    ask: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
    mode: PermissionMode = "default",
) -> Permissions:
    return Permissions((Level("settings", mode, Rules(allow, ask, deny)),))


def shell(command: str) -> Call:
    return Call("shell", {"command": command}, "/w")


def kind(permissions: Permissions, call: Call, effect: Effect = "acts", *grants: str) -> str:
    return decide(permissions, call, effect, grants).kind


GIT = chain(allow=("shell(git *)",))


@pytest.mark.parametrize(
    "command",
    [
        "git status",
        "  git   log --oneline -5  ",
        "git",
        "git commit -m 'a; rm -rf / && $(x)'",
        'git commit -m "one | two"',
        "git status 2>&1",
        "git fetch >/dev/null 2>&1; git status",
        "git status && git log || git diff | git patch-id",
        "git status;",
        "git gc &",
        "git status\ngit log",
        "git show HEAD~1 a=b x#y",
    ],
)
def test_a_rule_for_a_program_lets_each_of_its_plain_commands_run(command: str) -> None:
    assert kind(GIT, shell(command)) == "allow"


COMPOSED = [
    "git status && rm -rf x",
    "git status; rm -rf x",
    "git status | sh",
    "git status |& sh",
    "git status & rm x",
    "git status\nrm x",
    "git status || rm x",
    "git $(rm x)",
    "git `rm x`",
    'git "$(rm x)"',
    'git "`rm x`"',
    "git <(rm x)",
    "git log > /etc/passwd",
    "git log >> x",
    "git log 2> x",
    "git log &> x",
    "git < x",
    "git log >/dev/nullx",
    "git log 2>&1x",
    "X=1 git status",
    "GIT_PAGER='rm x' git log",
    "PATH=. git status",
    "A+=b git status",
    "A[0]=b git status",
    "(git status)",
    "{ git status; }",
    "if git status; then rm x; fi",
    "! git status",
    "git $HOME",
    "git ${x}",
    "git $'a'",
    "git\rrm x",
    "git \\\nrm x",
    "git \\; rm x",
    "git 'a",
    'git "a',
    "git {a,b}",
    "git *",
    "git # rm x",
    "git\x00 status",
    "git\x0brm",
    "gitk",
    "'git status'",
    "git\u00a0status",
    "/tmp/git status",
    "./git status",
    "command git status",
    "env git status",
    "git status && ",
    "&& git status",
    "; git status",
    "git status ;; git log",
    "git status & & git log",
    "~/git status",
    "",
    "   ",
]


@pytest.mark.parametrize("command", COMPOSED)
def test_a_rule_for_a_program_lets_nothing_else_run_beside_it(command: str) -> None:
    """A03's kind: what cannot be read is asked."""
    assert kind(GIT, shell(command)) == "ask"


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    """A directory with two programs: `ok` does nothing, `canary` leaves a mark where it is run."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        for name, body in (("ok", "exit 0"), ("canary", "echo > $MARK")):
            (place / name).write_text(f"#!{bash}\n{body}\n")
            (place / name).chmod(0o755)
        (place / "work").mkdir()
        yield place


PIECES = (
    *["ok", "canary", " canary", "ok ", " ", " ", "\t", "\n", "\r", "\v", "\x00"],
    *[
        ";",
        "&",
        "|",
        "&&",
        "||",
        ";;",
        "|&",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        ">>",
        "<<",
        "<<<",
        "2>&1",
        ">/dev/null",
    ],
    *[
        "$(canary)",
        "`canary`",
        "<(canary)",
        ">(canary)",
        "$",
        "${x}",
        "$'",
        '$"',
        "$((",
        "'",
        '"',
        "\\",
        "\\\n",
    ],
    *[
        "#",
        "!",
        "*",
        "?",
        "[",
        "]",
        "~",
        "=",
        "A=1 ",
        "%",
        "^",
        "-x",
        "--",
        "if ",
        "then ",
        "fi",
        "do ",
        "eval ",
    ],
    *[
        "command ",
        "exec ",
        "time ",
        ". ",
        "function ",
        "coproc ",
        "\u00a0",
        "\u2028",
        "é",
        "canary;",
        "&canary",
    ],
)


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(st.just("canary"), st.just(" "), st.sampled_from(PIECES)), max_size=8).map("".join))
@example(" x\ncanary")
@example(" `canary`")
@example(' "$(canary)"')
@example(" ;canary")
@example(" 2>&1 canary")
@example(" >/dev/null;canary")
def test_no_command_that_a_rule_for_another_program_allows_runs_this_one(programs: Path, rest: str) -> None:
    """J1: whatever is put behind the allowed word, bash itself is asked what it runs."""
    command = "ok" + rest
    if kind(chain(allow=("shell(ok *)",)), shell(command)) != "allow":
        return
    mark = programs / "mark"
    subprocess.run(
        ["bash", "-c", command],
        cwd=programs / "work",
        env={"PATH": str(programs), "MARK": str(mark)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        executable=shutil.which("bash"),
        check=False,
    )
    assert not mark.exists(), command
    assert list((programs / "work").iterdir()) == [], command


@settings(max_examples=300)
@given(
    st.sampled_from(["git status", "git log -1", "git"]),
    st.sampled_from([";", "&&", "||", "|", "|&", "&", "\n", " ; ", " && ", "\t|\t"]),
    st.text(alphabet="abcdefgh -./'\"$`\\(){}<>=#", min_size=1, max_size=20),
)
def test_what_stands_behind_a_separator_needs_a_rule_of_its_own(
    first: str, separator: str, second: str
) -> None:
    """J1."""
    both = kind(GIT, shell(first + separator + second))
    if both == "allow":
        simple = split_command(first + separator + second)
        assert simple is not None
        assert all(one.words[0] == "git" for one in simple)


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf x",
        "rm",
        "/bin/rm -rf x",
        "'rm' -rf x",
        "r\\m -rf x",
        'r""m -rf x',
        "X=1 rm x",
        "sudo rm x",
        "sudo -u root rm x",
        "env A=b rm x",
        "bash -c 'rm x'",
        'bash -c "cd y && rm x"',
        "git status && rm x",
        "git status\nrm x",
        "(rm x)",
        "{ rm x; }",
        "if true; then rm x; fi",
        "echo `rm x`",
        "echo $(rm x)",
        "find . -exec rm {} \\;",
        "ls | xargs rm",
        "nohup timeout 5 rm x",
        "flock lock rm x",
        "strace -f rm x",
        "systemd-run --user rm x",
        "! rm x",
    ],
)
def test_a_rule_that_denies_finds_the_command_wherever_it_stands(command: str) -> None:
    """A03: a grant for everything does not beat it."""
    everything = chain(allow=("shell",), deny=("shell(rm *)",))
    assert kind(everything, shell(command)) == "deny"
    assert kind(everything, shell(command), "acts", "shell", exact_rule(shell(command)) or "shell") == "deny"


@pytest.mark.parametrize("command", ["rm$IFS-rf x", "X=rm; $X x", "ec?o x", "eval $x", "x" * 30_000])
def test_what_cannot_be_told_from_a_denied_command_is_asked(command: str) -> None:
    assert kind(chain(allow=("shell",), deny=("shell(rm *)",)), shell(command)) == "ask"
    assert kind(chain(allow=("shell",)), shell(command)) == "allow"


def test_deny_beats_ask_beats_allow() -> None:
    rules = chain(("shell(git *)",), ("shell(git push *)",), ("shell(git push --force *)",))
    assert kind(rules, shell("git log")) == "allow"
    assert kind(rules, shell("git push origin")) == "ask"
    assert kind(rules, shell("git push --force origin")) == "deny"
    assert kind(rules, shell("git log"), "acts") == "allow"
    # A grant of the user's is an `allow`: it silences no rule that asks.
    assert kind(rules, shell("git push origin"), "acts", "shell(git push *)") == "ask"
    assert kind(rules, shell("make"), "acts", "shell(make *)") == "allow"


def test_parts_of_a_line_may_be_covered_by_different_rules_and_grants() -> None:
    rules = chain(("shell(git *)",))
    assert kind(rules, shell("git status && make")) == "ask"
    assert kind(rules, shell("git status && make"), "acts", "shell(make *)") == "allow"


EFFECTS: tuple[Effect, ...] = ("reads", "writes", "edits", "acts")
DEFAULTS: dict[PermissionMode, tuple[str, ...]] = {
    "default": ("allow", "allow", "ask", "ask"),
    "accept-edits": ("allow", "allow", "allow", "ask"),
    "plan": ("allow", "deny", "deny", "deny"),
    "deny-all": ("allow", "allow", "deny", "deny"),
}


@pytest.mark.parametrize("mode", DEFAULTS)
def test_a_mode_decides_where_no_rule_does(mode: PermissionMode) -> None:
    found = tuple(kind(chain(mode=mode), Call("thing", {}, "/w"), effect) for effect in EFFECTS)
    assert found == DEFAULTS[mode]


def test_plan_is_beaten_by_no_rule_and_deny_all_by_one_that_allows() -> None:
    plan = decide(chain(("shell",), mode="plan"), shell("ls"), "acts", ("shell",))
    assert plan.kind == "deny"
    assert "report what you would do" in plan.why
    assert kind(chain(("shell(ls *)",), mode="deny-all"), shell("ls")) == "allow"
    assert kind(chain(mode="deny-all"), shell("ls"), "acts", "shell(ls *)") == "deny", "a grant is no rule"
    assert kind(chain(("shell(ls *)",), ask=("shell(ls -a *)",), mode="deny-all"), shell("ls -a")) == "deny"


def agent(name: str, mode: PermissionMode = "bubble", **rules: tuple[str, ...]) -> Agent:
    return Agent(name, "", "", permission_mode=mode, rules=Rules(**rules))


def test_a_child_has_what_its_parents_have_and_never_more() -> None:
    base = Permissions((settings_level(PermissionSettings(allow=("shell(git *)",)), allow_shell=False),))
    parent = narrowed(base, agent("parent", deny=("shell(git push *)",)))
    child = narrowed(parent, agent("child", "accept-edits", allow=("shell", "shell(git push *)")))
    assert kind(child, shell("git log")) == "allow"
    assert kind(child, shell("git push")) == "deny"
    assert kind(child, shell("make")) == "ask", "its own rule does not widen what the settings say"
    assert kind(narrowed(child, agent("grandchild", "plan")), shell("git log")) == "deny"
    assert narrowed(base, agent("plain")) == base
    assert [level.who for level in child.levels] == ["settings", "parent", "child"]


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([*sorted(DEFAULTS), "bubble"]),
            *(
                st.lists(
                    st.sampled_from(["shell", "shell(git *)", "*", "write_file", "shell(rm *)"]), max_size=2
                ),
            )
            * 3,
        ),
        max_size=4,
    ),
    st.sampled_from([shell("git log"), shell("rm x"), shell("git log; rm x"), Call("write_file", {}, "/w")]),
    st.sampled_from(EFFECTS),
)
def test_every_further_level_can_only_narrow(
    levels: list[tuple[PermissionMode, list[str], list[str], list[str]]], call: Call, effect: Effect
) -> None:
    """J1: with any rules, any modes, any depth."""
    strictness = ["allow", "ask", "deny"]
    permissions = chain(allow=("shell(git *)",))
    before = strictness.index(kind(permissions, call, effect))
    for number, (mode, allow, ask, deny) in enumerate(levels):
        below = Agent(
            f"a{number}",
            "",
            "",
            permission_mode=mode,
            rules=Rules(tuple(allow), tuple(ask), tuple(deny)),
        )
        permissions = narrowed(permissions, below)
        after = strictness.index(kind(permissions, call, effect))
        assert after >= before
        before = after


def test_the_strictest_mode_of_a_chain_is_the_one_that_is_shown() -> None:
    assert effective_mode(chain()) == "default"
    assert effective_mode(Permissions()) == "default"
    plan = narrowed(chain(mode="accept-edits"), agent("a", "plan"))
    assert effective_mode(narrowed(plan, agent("b", "default", ask=("x",)))) == "plan"


def test_allow_shell_is_a_rule_like_any_other() -> None:
    level = settings_level(PermissionSettings(mode="bubble", deny=("shell(rm *)",)), allow_shell=True)
    assert level.mode == "default"
    assert names_tool(level.rules, "shell")
    assert kind(Permissions((level,)), shell("ls > x")) == "ask", "it may be what is denied"
    assert kind(Permissions((level,)), shell("ls")) == "allow"
    assert names_tool(Rules(ask=("Bash(git:*)",)), "shell")
    assert not names_tool(Rules(ask=("*",), deny=("shell",)), "shell")


def test_what_is_no_rule_of_an_agent_s_in_python_is_refused_before_it_runs() -> None:
    with pytest.raises(UsageError, match=r"rules of a: 'shell\(' is no rule"):
        narrowed(chain(), agent("a", deny=("shell(",)))
    with pytest.raises(UsageError, match="rules of settings"):
        settings_level(PermissionSettings(allow=("",)), allow_shell=False)


def test_nothing_runs_where_nothing_is_known() -> None:
    assert kind(Permissions(), shell("ls"), "reads") == "deny"


class TestPaths:
    """Compared as they resolve: links, `..` and absolute forms are one path."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        (tmp_path / "w" / "src").mkdir(parents=True)
        (tmp_path / "outside").mkdir()
        (tmp_path / "w" / "src" / "out").symlink_to(tmp_path / "outside")
        (tmp_path / "w" / "way").symlink_to(tmp_path / "w" / "src")
        return tmp_path / "w"

    @pytest.mark.parametrize(
        ("path", "allowed"),
        [
            ("src/a.py", True),
            ("./src/deep/a.py", True),
            ("src", True),
            ("way/a.py", True),
            ("src/../src/a.py", True),
            ("src/../b.py", False),
            ("src/out/a.py", False),
            ("srcx/a.py", False),
            ("../w/src/a.py", True),
            ("/etc/passwd", False),
            ("", False),
            ("src/a\0b", False),
            ("src/" + "x" * 5_000, False),
            ("src/\ud800", False),
        ],
    )
    def test_what_allows_matches_the_file_itself(self, place: Path, path: str, allowed: bool) -> None:
        call = Call("write_file", {"path": path}, str(place))
        assert bool(matching("allow", ["write_file(src/**)"], call)) == allowed
        absolute = Call("write_file", {"path": str(place / path)}, str(place))
        if path and "\0" not in path:
            assert bool(matching("allow", ["write_file(src/**)"], absolute)) == allowed

    @pytest.mark.parametrize(
        "path", ["src/a.py", "way/a.py", "src/out/a", "src/../src/a.py", "/nonsense/../{w}/src/a", "a\0b"]
    )
    def test_what_denies_matches_the_name_and_the_file(self, place: Path, path: str) -> None:
        call = Call("view_file", {"path": path.replace("{w}", str(place))}, str(place))
        assert matching("deny", ["view_file(src/**)"], call)

    def test_one_star_stays_in_one_directory(self, place: Path) -> None:
        def matches(pattern: str, path: str) -> bool:
            return bool(
                matching("allow", [f"write_file({pattern})"], Call("write_file", {"path": path}, str(place)))
            )

        assert matches("*.py", "a.py")
        assert not matches("*.py", "src/a.py")
        assert matches("**/*.py", "src/deep/a.py")
        assert matches("**/*.py", "a.py")
        assert matches("src/**/x", "src/a/b/x")
        assert matches("src/**/x", "src/x")
        assert not matches("src/*/x", "src/a/b/x")
        assert matches(f"{os.path.realpath(place)}/src/*", "src/a")
        assert matches("a\\*", "a*")
        assert not matches("a\\*", "ab")

    def test_composed_and_decomposed_names_are_one(self, place: Path) -> None:
        call = Call("view_file", {"path": "caf\u0065\u0301/x"}, str(place))
        assert matching("deny", ["view_file(caf\u00e9/**)"], call)


HOSTS = [
    ("https://example.org/a", True),
    ("http://EXAMPLE.org.:8080/a?b", True),
    ("https://www.example.org/", False),
    ("https://example.org.evil.com/", False),
    ("https://example.org@evil.com/", False),
    ("https://evil.com\\@example.org/", False),
    ("https://evil.com/#@example.org", False),
    ("https://evil.com?x=example.org", False),
    ("ftp://example.org/", False),
    ("example.org", False),
    ("https://exa mple.org", False),
    ("https://еxample.org/", False),
    ("https:///example.org", False),
]


@pytest.mark.parametrize(("url", "allowed"), HOSTS)
def test_a_domain_is_the_one_that_every_reader_sees(url: str, allowed: bool) -> None:
    call = Call("web_fetch", {"url": url}, "/w")
    assert bool(matching("allow", ["web_fetch(domain:example.org)"], call)) == allowed


def test_a_denied_domain_is_denied_with_what_is_below_it_and_what_cannot_be_read() -> None:
    deny = chain(allow=("web_fetch",), deny=("web_fetch(domain:example.org)",))
    for url in ("https://example.org", "https://a.b.example.org/x", "https://x@example.org/", "nonsense"):
        assert kind(deny, Call("web_fetch", {"url": url}, "/w")) == "deny"
    assert kind(deny, Call("web_fetch", {"url": "https://example.com/"}, "/w")) == "allow"


def test_other_arguments_can_be_named_in_a_pattern() -> None:
    call = Call("send_mail", {"to": "ann@example.org", "text": "hi"}, "/w")
    assert matching("allow", ["send_mail(to:*@example.org)"], call)
    assert not matching("allow", ["send_mail(to:*@example.com)"], call)
    assert matching("deny", ['send_mail(*"ann@example.org"*)'], call)
    assert matching("deny", ["send_*"], call)
    assert matching("deny", ["*"], call)
    assert not matching("deny", ["send"], call)
    assert matching("allow", ["Task(coder)"], Call("delegate", {"agent": "coder", "task": "x"}, "/w"))
    assert matching("deny", ["Bash(rm:*)"], shell("rm -rf x"))


@pytest.mark.parametrize("tool", ["delegate", "spawn"])
@pytest.mark.parametrize(
    "name", ["coder", "Coder", " @coder", "[coder]", "role: coder", "ｃｏｄｅｒ", "co\u200bder"]
)
def test_a_rule_for_an_agent_holds_however_its_name_is_spelled(tool: str, name: str) -> None:
    """A03: all of these are handed to the coder (N02), so none gets past a rule that denies it."""
    call = Call(tool, {"agent": name, "task": "x"}, "/w")
    for pattern in ("coder", "Coder", "cod*"):
        assert kind(chain(deny=(f"{tool}({pattern})",)), call, "reads") == "deny"
    assert kind(chain(deny=(f"{tool}(decoder)", f"{tool}(code-reviewer)")), call, "reads") == "allow"
    assert (
        kind(chain(deny=(f"{tool}(code-reviewer)",)), Call(tool, {"agent": "Code_Reviewer"}, "/w")) == "deny"
    )


def test_an_argument_s_name_cannot_pass_for_a_rule_about_all_arguments() -> None:
    """A03: what was allowed is exactly that call, whatever else another one brings along."""
    call = Call("send_mail", {"to": "ann@example.org"}, "/w")
    rule = exact_rule(call)
    assert matching("allow", [rule], call)
    forged = {'{"to"': '"ann@example.org"}', "to": "eve@example.org"}
    assert not matching("allow", [rule], Call("send_mail", forged, "/w"))


@pytest.mark.parametrize(
    "call",
    [
        shell("git status && rm -rf 'a b' > x"),
        shell("echo * \\*"),
        Call("write_file", {"path": "a*b"}, "/w"),
        Call("send_mail", {"to": "a*", "text": 'q"\\'}, "/w"),
    ],
)
def test_the_rule_that_is_offered_is_for_that_call_only(call: Call) -> None:
    rule = exact_rule(call)
    assert matching("allow", [rule], call)
    assert parse_rule(rule)
    key, value = next(iter(call.arguments.items()))
    other = Call(call.tool, {**call.arguments, key: f"{value}x"}, call.directory)
    assert not matching("allow", [rule], other)
    shorter = Call(call.tool, {**call.arguments, key: str(value).replace("*", "zz")}, call.directory)
    if shorter != call:
        assert not matching("allow", [rule], shorter)


def test_no_rule_is_offered_that_could_not_be_kept() -> None:
    assert exact_rule(shell("echo " + "x" * 5_000)) == ""
    assert exact_rule(shell("a\nb")) == ""
    assert exact_rule(shell("a\x1b[2J")) == ""
    assert (
        exact_rule(Call("web_fetch", {"url": "https://example.org/x"}, "/w"))
        == "web_fetch(domain:example.org)"
    )


@pytest.mark.parametrize(
    "text", ["", "shell(", "shell)", "she ll", "shell()", "(x)", "x" * 70, "shell(" + "x" * 5_000]
)
def test_what_is_no_rule_is_said_to_be_none(text: str) -> None:
    with pytest.raises(ValueError):
        parse_rule(text)


def test_a_pattern_takes_no_longer_the_more_stars_it_has() -> None:
    """A text that a model wrote cannot make a rule of the user's slow."""
    call = Call("send_mail", {"text": "a" * 200_000}, "/w")
    assert not matching("deny", ["send_mail(text:" + "*a" * 50 + "*b)"], call)
