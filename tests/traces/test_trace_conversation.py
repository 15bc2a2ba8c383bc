"""What was said in a run, as it is read from entries."""

from typing import cast

from recorded_runs import Recording, answered, ended, entries_of, failed, spawned, started, turn

from xclaw.contracts.events import Compacted, MessageAdded, ModelAnswered, ToolCallEnded
from xclaw.contracts.messages import AssistantMessage, ToolCall
from xclaw.contracts.usage import Usage
from xclaw.traces.conversation import conversations
from xclaw.traces.forms import conversation_json


def test_the_full_prompt_and_every_completion_are_there_in_order() -> None:
    """K5: full prompt and completion."""
    call = ToolCall("call-1", "shell", '{"command": "ls"}')
    (conversation,) = conversations(
        entries_of(
            [
                started("coder"),
                turn(1),
                ModelAnswered(
                    1, AssistantMessage("I look", (call,), "hm"), Usage(9, 3), 0.1, "m:1", "tool_calls", 0.2
                ),
                ToolCallEnded("call-1", "shell", False, "no such file", 0.1, "/spilled", 2),
                MessageAdded("a notification", "notification"),
                turn(2),
                answered(2, Usage(9, 3)),
                ended(),
            ]
        )
    )
    assert (conversation.agent, conversation.instructions) == ("coder", "be good")
    assert (conversation.tools, conversation.dialect) == (("deliver",), "native")
    form = conversation_json(conversation)
    messages = cast("list[dict[str, object]]", form["messages"])
    assert [(said["role"], said["text"]) for said in messages] == [
        ("user", "input of coder"),
        ("assistant", "I look"),
        ("tool", "no such file"),
        ("user", "a notification"),
        ("assistant", "answer 2"),
    ]
    assert messages[1]["tool_calls"] == [{"id": "call-1", "name": "shell", "arguments": '{"command": "ls"}'}]
    assert (messages[1]["completion"], messages[4]["completion"]) == ("I look", "raw 2")
    assert (messages[2]["ok"], messages[2]["spilled"]) == (False, "/spilled")
    assert messages[3]["origin"] == "notification"


def test_what_a_failed_attempt_had_said_is_marked_as_retracted() -> None:
    (conversation,) = conversations(
        entries_of(
            [started("coder"), turn(1), failed(1, Usage(3, 1), None, "a:1", "b:1"), answered(1, Usage(3, 1))]
        )
    )
    retracted = conversation.messages[1]
    assert (retracted.role, retracted.text, retracted.finish) == ("retracted", "half a te", "broke")


def test_a_compaction_says_what_it_replaced_and_by_what() -> None:
    (conversation,) = conversations(entries_of([started("coder"), Compacted(4, "in short", 900, 90)]))
    assert (conversation.messages[1].role, conversation.messages[1].kept_from) == ("compacted", 4)
    assert conversation.messages[1].text == "in short"


def test_each_run_of_a_tree_has_its_own_conversation() -> None:
    recording = Recording()
    recording.record("root", started("orchestrator"), spawned("a", "coder"))
    recording.record("a", started("coder", 1), parent="root")
    assert [each.agent for each in conversations(recording.entries)] == ["orchestrator", "coder"]
