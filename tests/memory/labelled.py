"""A small labelled set: notes, and questions with the notes that answer them, in English and Chinese."""

NOTES: dict[str, str] = {
    "tabs": "The user prefers tabs over spaces when indenting Python code.",
    "friday": "Deployments happen on Friday mornings from the release branch, never from main.",
    "staging": "The staging server is staging.example.org; its SSH port is 2222.",
    "money": "Amounts are stored in cents as integers because floats lost money in invoice 1043.",
    "allergy": "Alice is allergic to peanuts, so no peanut butter for the team breakfast.",
    "retry": "The payment provider answers 503 under load: retry with exponential backoff, at most five times.",
    "logo": "Brand colour of the website is #1E40AF, a dark blue; the logo must not be stretched.",
    "meeting": "Weekly planning takes place on Tuesdays at 10:30 in room Turing.",
    "tea": "用户住在上海，早上喜欢喝绿茶，不喝咖啡。",
    "pg": "项目的数据库是 PostgreSQL 15，跑在内网的 db01 上，每天凌晨三点备份。",
    "review": "合并之前必须有两个人审查代码，其中一个是架构师。",
    "report": "周报每周五下午发给王经理，格式用 Markdown，不要附 Excel。",
    "encoding": "旧系统导出的 CSV 文件是 GBK 编码，读取之前要先转换成 UTF-8。",
    "holiday": "国庆假期期间不发布新版本，只处理紧急故障。",
    "invoice": "发票上的税率是百分之十三，公司名称必须写全称。",
    "style": "写文档时用简短的句子，避免使用被动语态。",
}

BY_WORDS: list[tuple[str, str]] = [
    ("tabs or spaces for indenting?", "tabs"),
    ("When do we deploy?", "friday"),
    ("which SSH port does the staging server use", "staging"),
    ("how are amounts stored", "money"),
    ("is anybody allergic to something?", "allergy"),
    ("payment provider returns 503", "retry"),
    ("what is the colour of the brand", "logo"),
    ("weekly planning room", "meeting"),
    ("用户喜欢喝什么", "tea"),
    ("数据库什么时候备份", "pg"),
    ("代码审查需要几个人", "review"),
    ("周报发给谁", "report"),
    ("CSV 文件是什么编码", "encoding"),
    ("国庆期间可以发布吗", "holiday"),
    ("发票的税率", "invoice"),
    ("文档用什么语态", "style"),
    ("PostgreSQL version", "pg"),
]

BY_MEANING: list[tuple[str, str]] = [
    ("Which whitespace does he like in source files?", "tabs"),
    ("On what weekday does a new version go live?", "friday"),
    ("foods we should avoid buying for our colleagues", "allergy"),
    ("what should happen when the card processor is overloaded", "retry"),
    ("Which database does the project run on?", "pg"),
    ("What does the user like to drink in the morning?", "tea"),
    ("How many people must approve a merge?", "review"),
    ("上线安排在星期几", "friday"),
    ("金额为什么不能用浮点数", "money"),
    ("测试服务器的端口", "staging"),
    ("饮料偏好", "tea"),
    ("长假里能不能上线", "holiday"),
]

UNRELATED: list[str] = [
    "What is the boiling point of nitrogen?",
    "Write a haiku about the sea.",
    "How tall is Mount Everest?",
    "鲸鱼是哺乳动物吗",
    "解释一下相对论",
    "hello",
]
