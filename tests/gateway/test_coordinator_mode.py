"""A gateway in coordinator mode: who answers, and what clients are told of the phases (SPEC H1)."""

import asyncio
from pathlib import Path

from behaviour.coordinated import (
    EXPLORER,
    QUESTIONS,
    call,
    checking,
    coordinator,
    delivered,
    planned,
    running,
    settings_of,
    worker,
)
from behaviour.harness import write_script
from gateway.served import served, with_gateway
from xclaw.gateway.wire import EventFrame, ReplyFrame

CHECK = "test -f a.py"
JOB = [
    coordinator(
        call("research", tasks=QUESTIONS),
        call("write_plan", plan=[planned("a")]),
        call("implement"),
        checking(CHECK),
        {"text": "All done."},
    ),
    EXPLORER,
    worker("coder", *delivered("a.py")),
    running(CHECK),
]


def test_the_coordinator_answers_in_the_orchestrators_place_and_its_phases_are_events(tmp_path: Path) -> None:
    settings = with_gateway(settings_of(tmp_path, write_script(tmp_path, JOB)))

    async def main() -> None:
        async with asyncio.timeout(30), served(settings) as gateway, gateway.client() as client:
            await client.watch("s")
            await client.say("s", "Review the package and rework it.")
            frames = await client.to_reply()
        reply = frames[-1]
        assert isinstance(reply, ReplyFrame)
        assert (reply.content, reply.outcome) == ("All done.", "success")
        events = [frame.data for frame in frames if isinstance(frame, EventFrame)]
        started = next(data for data in events if data["kind"] == "run_started")
        assert started["agent"] == "coordinator"
        changes = [data for data in events if data["kind"] == "phase_changed"]
        assert [data["verdict"] for data in changes if data["verdict"]] == ["passed"]
        assert [data["phase"] for data in changes if data["part"]] == [
            "research",
            "implementation",
            "verification",
        ]

    asyncio.run(main())
