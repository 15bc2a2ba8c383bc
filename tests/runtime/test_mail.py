"""What runs say to one another waits in order, is read in bounded batches, and is lost or doubled by nobody."""

from xclaw.contracts.events import Address, Entry, MessageAdded
from xclaw.contracts.team_events import MailSent
from xclaw.runtime.mail import BATCH_CHARACTERS, BATCH_MESSAGES, Mail, Mailbox, as_message

ADDRESS = Address("r1", "r1", "", "s")


def letter(number: int, text: str = "hello") -> MessageAdded:
    return as_message(MailSent(f"m{number}", "c1", text, "notification", "coder", "writer"))


def test_five_thousand_letters_are_read_in_order_and_in_bounded_batches() -> None:
    """B07."""
    box = Mailbox()
    letters = [letter(number, "x" * 2_000) for number in range(5_000)]
    for each in letters:
        box.put(each)
    read: list[MessageAdded] = []
    while batch := box.take():
        assert len(batch) <= BATCH_MESSAGES
        assert sum(len(each.text) for each in batch) <= BATCH_CHARACTERS
        read += batch
    assert read == letters
    assert not box.has_mail()
    assert not box.changed.is_set()


def test_what_is_left_over_is_still_mail() -> None:
    box = Mailbox()
    for number in range(BATCH_MESSAGES + 1):
        box.put(letter(number))
    box.take()
    assert box.has_mail()
    assert box.changed.is_set()


def test_one_that_is_longer_than_a_batch_is_read_alone() -> None:
    box = Mailbox()
    box.put(letter(1, "x" * BATCH_CHARACTERS))
    box.put(letter(2))
    assert [each.message_id for each in box.take()] == ["m1"]
    assert [each.message_id for each in box.take()] == ["m2"]


def test_what_the_user_says_is_no_mail_and_who_waits_for_its_lead_is_woken_by_it_alone() -> None:
    box = Mailbox()
    box.put(MessageAdded("and quickly", "user", "u1"))
    assert not box.has_mail()
    box.put(letter(1))
    assert box.has_mail()
    assert not box.has_mail(from_above=True)
    box.put(MessageAdded("your turn", "agent", "t1"))
    assert box.has_mail(from_above=True)


def test_after_a_crash_what_was_not_read_is_delivered_once() -> None:
    """K6."""
    read, unread = (MailSent(f"m{n}", "c1", "hello", "notification", "coder", "writer") for n in (1, 2))
    entries = [
        Entry(ADDRESS, 1, 0.0, read),
        Entry(ADDRESS, 2, 0.0, unread),
        Entry(ADDRESS, 1, 0.0, as_message(read)),
    ]
    mail = Mail()
    mail.recall(entries)
    assert mail.collect("c1") == [unread]
    assert mail.collect("c1") == []
