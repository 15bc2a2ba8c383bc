"""What a Chinese clause tells somebody to do."""

from collections.abc import Sequence

from xclaw.gateway.routing.acts import Act, act_at
from xclaw.gateway.routing.clauses import (
    NEAR_UNITS,
    Clause,
    in_noun_list,
    is_done_first,
    is_told,
    is_verb,
    skip,
)
from xclaw.gateway.routing.lexicon import Unit
from xclaw.gateway.routing.rules import Rule


def chinese_act(clause: Clause, rules: Sequence[Rule]) -> Act | None:
    """The first verb that is none of a noun's parts, and nobody's who is told of."""
    units = clause.units
    fallback: Act | None = None
    for place, unit in enumerate(units):
        if unit.is_any("whys"):
            break
        if not is_verb(unit) or _inside_noun(clause, place) or _only_asks(units, place):
            continue
        if _is_negated(units, place):
            return Act("negated", unit.text)
        act = act_at(clause, place, rules)
        if act is not None and act.kind != "looking":
            return act
        fallback = fallback or act
        if act is not None and not _only_introduces(unit):
            return act
    if fallback is None and units and units[skip(units, 0, "polite") % len(units)].is_any("negations"):
        return Act("negated", units[0].text)
    return fallback


def _only_asks(units: Sequence[Unit], place: int) -> bool:
    """ "我要写": the verb comes; "我要一份文档" is a wish by itself."""
    following = units[place + 1] if place + 1 < len(units) else Unit("")
    return units[place].is_any("wishes") and not following.is_any("ones")


def _only_introduces(unit: Unit) -> bool:
    """ "做", "用", "需要": another verb may follow that says more."""
    return any(name.startswith("verb:") or name == "making" for name in unit.classes) or len(unit.text) == 1


def _inside_noun(clause: Clause, place: int) -> bool:
    units = clause.units
    following = units[place + 1] if place + 1 < len(units) else Unit("")
    before = units[place - 1] if place else Unit("")
    near = units[max(0, place - NEAR_UNITS) : place]
    if following.text == "得" and any(unit.is_any("moved") for unit in near):
        return False  # "把文档改得更清楚"
    if (
        _is_said_of(following)
        or ((is_told(units, place) or following.is_any("afterwards")) and not is_done_first(units, place + 1))
        or before.is_any("attributive")
        or before.text == "的"
    ):
        return True
    if any(unit.is_any("narrative") for unit in units[max(0, place - 2) : place]):
        return True
    if (
        clause.question
        and before.is_any("code_nouns")
        and not any(unit.is_any("polite", "handed") for unit in units[:place])
    ):
        return not any(name.startswith("verb:") for name in units[place].classes)  # "服务器配置安全吗"
    if before.is_any("lists") and place >= 2 and in_noun_list(units, place - 1):
        return True
    if before.is_any("handed") and any(map(is_verb, units[place + 1 :])):
        return True
    return _is_modifier(clause, place)


def _is_said_of(following: Unit) -> bool:
    """ "运行很慢": how something is done, not what to do."""
    return following.text[:1] in ("很", "太") and len(following.text) > 1


def _is_modifier(clause: Clause, place: int) -> bool:
    """ "给负责创建用户的模块写文档": a verb, then "的", then what is really asked for."""
    units = clause.units
    particle = next((index for index in range(place + 1, len(units) - 1) if units[index].text == "的"), None)
    if particle is None:
        return False
    handed = any(unit.is_any("handed") for unit in units[:place])
    if handed:
        return any(is_verb(unit) for unit in units[particle + 1 :])
    asked = not any(unit.is_any("polite") for unit in units[: place + 1])
    return (
        clause.question
        and asked
        and place == 0
        and any(unit.is_any("questions") for unit in units[particle + 1 :])
    )


def _is_negated(units: Sequence[Unit], place: int) -> bool:
    for index in range(place - 1, -1, -1):
        if units[index].is_any("negations"):
            return True
        if not units[index].is_any("polite", "looking", "sequels", "joins"):
            return False
    return False
