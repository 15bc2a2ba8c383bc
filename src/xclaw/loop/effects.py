"""Whether a task asks for effects: files, code, changes. English and Chinese."""

import re

_NOT_WORDS_OF_THE_TASK = re.compile(
    r"^\[(?:Task workspace|Shared delivery dir|Input artifacts):[^\]]*\]|```.*?(?:```|\Z)|`[^`\n]*`",
    re.MULTILINE | re.DOTALL,
)
_TALK = re.compile(
    r"\b(?:how|what|why|when|where|whether)\b[^.?!\n]{0,40}?\b(?:to|would|should|do|does|can|could)\b[^.?!\n]*"
    r"|\b(?:do not|don['’]t|never|without|avoid|must not|no need to)\b[^.,;!?\n]*"
    r"|(?:如何|怎么|怎样|为什么|是否|什么是)[^。？！，；\n]*|(?:不要|不用|无需|不必|不得|禁止|别|请勿)[^。？！，；\n]*",
    re.IGNORECASE,
)
_FILE = r"[\w-]\.(?:[a-z][a-z0-9]{1,4}|[chr])\b"
_SAME_SENTENCE = r"(?:[^.!?\n]|\.(?=\S))"
_VERB = "".join(f"(?<!{word} )" for word in ("the", "this", "a", "an", "your", "each", "any", "last"))
_MAKE = (
    _VERB
    + r"\b(?:write|create|build|generate|produce|make (?:an?|the|me)|develop|draft|add|update|edit|modify"
    r"|rewrite|prepare|fix|extend|change|append)"
)
_MADE = (
    r"(?:files?|code|functions?|methods?|class(?:es)?|modules?|scripts?|programs?|apps?|applications?|tests?"
    r"|test suites?|components?|apis?|endpoints?|services?|servers?|clients?|librar(?:y|ies)|packages?|tools?"
    r"|pages?|web ?sites?|reports?|documents?|documentation|docs|docstrings?|readme|changelog|configs?"
    r"|configuration|schemas?|migrations?|quer(?:y|ies)|patch(?:es)?|diffs?|bugs?|spreadsheets?|csv|json"
    r"|diagrams?|slides?|artifacts?|cli|parsers?|algorithms?|implementation)"
)
_ENGLISH = re.compile(
    rf"{_VERB}\b(?:implement|deliver|refactor|install|deploy|scaffold)\b|\bcommit (?:the|your|all|it)\b"
    rf"|\bsave\b{_SAME_SENTENCE}{{0,60}}\b(?:to|in|as|into)\b"
    rf"|{_MAKE}\b{_SAME_SENTENCE}{{0,80}}?(?:\b{_MADE}\b|{_FILE})"
    rf"|\b(?:run|execute)\b{_SAME_SENTENCE}{{0,40}}\b(?:tests?|scripts?|commands?|builds?)\b"
    rf"|\b(?:delete|remove|rename|move|copy)\b{_SAME_SENTENCE}{{0,40}}(?:\b(?:files?|director(?:y|ies)|folders?)\b|{_FILE})",
    re.IGNORECASE,
)
_CHINESE_MADE = (
    r"(?:文件|代码|函数|方法|类|模块|脚本|程序|应用|测试|用例|组件|接口|服务|库|工具|页面|网页|网站|报告|文档"
    r"|说明书|配置|补丁|表格|算法|实现|README|readme|[\w-]\.(?:[a-z][a-z0-9]{1,4}|[chr])\b)"
)
_CHINESE = re.compile(
    r"交付|部署|安装|重构|落盘|保存(?:到|为|成|至)"
    r"|(?<![的该其析查论])(?:实现|开发)(?!方案|方式|方法|原理|流程|细节|思路|经验|者|了|的)"
    rf"|(?:写|编写|撰写|创建|生成|制作|构建|新建|添加|增加|修改|更新|修复|产出|输出|起草)[^。！？\n]{{0,40}}?{_CHINESE_MADE}"
    rf"|(?:运行|执行|跑)[^。！？\n]{{0,20}}(?:测试|脚本|命令)|(?:删除|移动|重命名)[^。！？\n]{{0,20}}(?:文件|目录|文件夹)",
)
_READ_CHARS = 20_000


def effects_claimed(task_text: str) -> bool:
    """Whether the task asks for something that must be seen in files or tool calls when it is done.

    Decided on the task's own words: not its headers, code blocks, questions or prohibitions.
    """
    words = _NOT_WORDS_OF_THE_TASK.sub(" ", task_text[:_READ_CHARS])
    words = _TALK.sub(" ", words)
    return bool(_ENGLISH.search(words) or _CHINESE.search(words))
