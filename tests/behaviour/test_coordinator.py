"""Coordinator mode from request to verified answer (SPEC H1-H5)."""

from pathlib import Path

from behaviour.coordinated import *


def test_four_phases(tmp_path: Path) -> None:
    check = "test -f a.py && test -f b.py"
    seen = coordinate(
        tmp_path,
        [
            coordinator(
                call("research", tasks=QUESTIONS),
                call("write_plan", plan=[planned("a"), planned("b", depends_on=["a"])]),
                call("implement"),
                checking(check),
                {"text": "All done."},
            ),
            EXPLORER,
            worker("coder", *delivered("a.py"), when="module a.py"),
            worker("coder", *delivered("b.py"), when="module b.py"),
            running(check),
        ],
    )
    for e in seen.entries:
        print(e.address.run_id[-6:], e.event.kind, str(e.event)[:300])
    assert seen.result.outcome == "success", seen.result
