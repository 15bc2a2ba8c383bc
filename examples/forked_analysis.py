"""A CPU-heavy agent of one's own: it counts words in every text file of a folder, and asks a model what they say.

    xclaw fork examples/forked_analysis.py docs --mode debug
    xclaw fork --model script:examples/forked_analysis_script.yaml examples/forked_analysis.py docs

It is an ordinary Python program. As xclaw's forked agent it runs in a process of its own, so that the counting
slows nobody else; its model call goes through xclaw's keys, budget and trace; what it delivers is an artifact.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import xclaw.script as xclaw

STOPWORDS = frozenset(
    ("the", "a", "an", "of", "and", "or", "to", "in", "is", "it", "that", "for", "on", "with", "as", "by")
)


def count(folder: Path, suffixes: tuple[str, ...]) -> Counter[str]:
    words: Counter[str] = Counter()
    for path in sorted(folder.rglob("*")):
        if path.suffix in suffixes and path.is_file():
            text = path.read_text("utf-8", "replace").casefold()
            words.update(word for word in text.split() if word.isalpha() and word not in STOPWORDS)
    return words


def main() -> int:
    parser = argparse.ArgumentParser(description="Count words and have a model say what they are about.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mode", choices=["plain", "debug"], default="plain")
    options = parser.parse_args()
    if not options.folder.is_dir():
        xclaw.fail(f"{options.folder} is no folder")
    xclaw.say(f"counting in {options.folder} ...")
    words = count(options.folder, (".md", ".txt"))
    top = words.most_common(20)
    if options.mode == "debug":
        print(f"{sum(words.values())} words, {len(words)} different ones", file=sys.stderr)
    subject = xclaw.ask(
        "These are the most frequent words of some documents, with their counts:\n"
        + "\n".join(f"{word}: {number}" for word, number in top)
        + "\nWhat are the documents about?",
        schema={
            "type": "object",
            "properties": {"subject": {"type": "string"}},
            "required": ["subject"],
        },
    )
    table = "\n".join(f"| {word} | {number} |" for word, number in top)
    xclaw.deliver("words.md", f"# {subject['subject']}\n\n| word | count |\n| --- | --- |\n{table}\n")
    xclaw.finish(
        {"words": sum(words.values()), "subject": subject["subject"]},
        f"{sum(words.values())} words, about {subject['subject']}",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
