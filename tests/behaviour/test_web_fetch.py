"""web_fetch in whole runs: asked by default, allowed by domain, and private addresses are not reached (I5, J1)."""

import asyncio
from pathlib import Path

from approving import asked, done, opened, orchestrates, say
from harness import Script, follow

from xclaw.contracts.agents import Agent
from xclaw.contracts.events import ApprovalAsked, RunStarted, ToolCallEnded
from xclaw.runtime.runs import RunRequest

URL = "http://127.0.0.1:9/page"
READER = Agent("reader", "reads pages", "You read.", tools=("web_fetch",))


def fetching(agent: str) -> Script:
    handed: dict[str, object] = {"name": "delegate", "arguments": {"agent": agent, "task": "Read a page."}}
    call: dict[str, object] = {"name": "web_fetch", "arguments": {"url": URL}}
    return [orchestrates(handed), {"agent": agent, "replies": [{"calls": [call]}, done()]}]


def test_a_page_is_asked_for_and_the_rule_on_offer_is_its_domain(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), opened(tmp_path, fetching("reader"), [READER]) as app:
            watching = asyncio.create_task(follow(await app.runs.start(RunRequest("go", "s"))))
            (approval,) = await asked(app)
            assert (approval.tool, approval.rule) == ("web_fetch", "web_fetch(domain:127.0.0.1)")
            await say(app, approval, "deny", reason="not that one")
            seen = await watching
        [ended] = [event for event in seen.events(ToolCallEnded) if event.name == "web_fetch"]
        assert "not that one" in ended.content

    asyncio.run(main())


def test_a_rule_lets_it_run_and_the_address_is_checked_all_the_same(tmp_path: Path) -> None:
    allow = ("web_fetch(domain:127.0.0.1)",)

    async def main() -> None:
        async with asyncio.timeout(30), opened(tmp_path, fetching("coder"), allow=allow) as app:
            seen = await follow(await app.runs.start(RunRequest("go", "s")))
        assert seen.events(ApprovalAsked) == []
        [ended] = [event for event in seen.events(ToolCallEnded) if event.name == "web_fetch"]
        assert not ended.ok
        assert "private network" in ended.content
        [coder] = [event for event in seen.events(RunStarted) if event.agent == "coder"]
        assert "web_fetch" in coder.tools

    asyncio.run(main())


def test_nobody_is_offered_it_without_a_word_of_the_user(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), opened(tmp_path, fetching("coder")) as app:
            seen = await follow(await app.runs.start(RunRequest("go", "s")))
        assert all("web_fetch" not in event.tools for event in seen.events(RunStarted))

    asyncio.run(main())
