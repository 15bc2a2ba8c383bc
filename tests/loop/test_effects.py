"""Whether a task asks for effects that must be seen when it is done."""

import pytest

from xclaw.loop.finish import effects_claimed


@pytest.mark.parametrize(
    "task",
    [
        "Write report.md in French; NEVER touch config.yml; token MAGENTA-77",
        "Implement JWT sign and verify with HS256.",
        "Create a Python module that parses dates.",
        "write a function that adds two numbers",
        "Build a REST API for users.",
        "Generate unit tests for the parser.",
        "Fix the bug in the login page.",
        "Refactor auth.py",
        "Please save the list to a file.",
        "Run the tests and tell me which fail.",
        "Deliver the diagram.",
        "Write documentation for the module.",
        "Delete the old files.",
        "Please write ./out/report.md",
        "I want you to create a script.",
        "You have to implement the parser.",
        "实现 JWT 认证模块",
        "写一个函数，计算两数之和",
        "编写测试用例",
        "创建 index.html",
        "生成文件 data.csv",
        "把结果保存到 out.json",
        "修复登录页面的问题",
        "为以下函数写 README 文档",
        "交付源代码",
        "运行测试",
        "[Task workspace: /w/agents/coder/a]\n\n[Shared delivery dir: /w/shared/a]\n\nWrite jwt.ts",
    ],
)
def test_a_task_that_asks_for_files_or_changes_claims_effects(task: str) -> None:
    assert effects_claimed(task)


@pytest.mark.parametrize(
    "task",
    [
        "",
        "Hello",
        "Explain how to write a function in Rust.",
        "What is the capital of France?",
        "Review the following code for security:\n```python\ndef create_file():\n    write('x')\n```",
        "Summarise a.txt in three sentences.",
        "Read report.md and list its main points. Do not write any files.",
        "Write a haiku about autumn.",
        "Translate into Chinese: good morning",
        "Compare Redis and SQLite for sessions and recommend one.",
        "Is `create file` a good name?",
        "How would you implement a cache?",
        "Review the code in module auth.",
        "Read the document and count the files.",
        "Make sure the test results are right.",
        "Review the last change in auth.py",
        "Explain the build of the app.",
        "审查实现细节",
        "分析开发流程的问题",
        "总结这篇文章的要点",
        "审查这段代码的安全性",
        "如何实现一个缓存？",
        "翻译成中文：good morning",
        "写一首关于秋天的诗",
        "分析两种方案的优缺点，不要创建任何文件",
        "[Task workspace: /w/build/file.py]\n\n[Shared delivery dir: /w/create/code]\n\nSay hello",
    ],
)
def test_a_task_that_asks_for_words_only_does_not(task: str) -> None:
    assert not effects_claimed(task)


def test_a_huge_task_is_read_in_time() -> None:
    assert not effects_claimed("write " * 100_000)
    assert not effects_claimed("how " * 100_000)
    assert not effects_claimed("写" * 100_000)
