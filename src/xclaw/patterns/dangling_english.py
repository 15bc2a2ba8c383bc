"""English requests that are about something the reader cannot see, as whole sentences.

Each shape has to match from the first word to the last, so that any further word which could say what is
meant ("the code of the login service") lets the task pass. Ignoring case, verbose; compiling them takes a while.
"""

_NOUN = r"""(?:
    code|codes|function|functions|class|method|methods|module|script|program|snippet|implementation|query|diff|patch
    |file|files|document|documents|doc|docs|text|texts|article|paragraph|passage|essay|report|email|e-mail|letter|poem
    |story|sentence|sentences|message|messages|summary|draft|translation|list|table|data|dataset|results?|outputs?
    |answers?|repl(?:y|ies)|responses?|findings|notes?|content|contents|conversation|chat|discussion|thread|review
    |plan|design|approach|proposal|idea|ideas|suggestions?|feedback|comments?|requirements?|instructions?|request
    |bug|bugs|issue|issues|error|errors|problem|problems|test|tests|change|changes|task|tasks|step|steps|part|parts
    |version|solution|schema|api|endpoint|question|spec|specification|attachment|image|picture|screenshot
)"""
_MODIFIER = r"(?:(?:whole|entire|full|same|following|attached|source|python|given|provided|selected|current|new|other)\s+)?"
# "above", "previous" and their like say by themselves that the thing is somewhere else.
_ELSEWHERE = r"(?:above|previous|earlier|preceding|prior|last|aforementioned|above-mentioned)"
_BEHIND = r"(?:\s+(?:above|below|mentioned\ above|from\ above|from\ before|from\ earlier|here))?"
_PLAIN_NOUN = r"""(?:
    code|function|class|method|snippet|query|diff|patch|file|document|text|article|paragraph|passage|essay|email|letter|poem
    |story|sentence|message|draft|translation|conversation|chat|discussion|bug|answer|reply
)"""
_PLAIN_THING = rf"(?:the|my|your)\s+{_MODIFIER}{_PLAIN_NOUN}"
"""Only "the": it may be known from elsewhere, so fewer nouns, and fewer verbs before it, are sure signs."""
_THING = rf"""(?:
    (?:this|that|these|those|said|above)\s+{_MODIFIER}{_NOUN}{_BEHIND}
    | (?:the|my|our|your)\s+{_MODIFIER}{_NOUN}(?:\s+(?:given|shown|provided|written|listed|pasted|described))?
        \s+(?:above|below|mentioned\ above|from\ above|from\ before|from\ earlier)
    | (?:the|this|that|these|those|my|our|your)\s+{_ELSEWHERE}\s+(?:\w+\s+)?{_NOUN}(?:'s\s+{_NOUN})?
    | (?:the|my|our|your)\s+{_NOUN}\s+of\s+the\s+{_ELSEWHERE}\s+{_NOUN}
    | (?:everything|all|what(?:ever)?)\s+(?:is\s+)?(?:above|below)
    | our\s+(?:\w+\s+)?(?:conversation|chat|discussion)
    | it|this|that|these|those|them|the\s+above|the\s+following|the\s+rest
)"""
_LANGUAGE = r"""(?:english|chinese|french|german|spanish|italian|japanese|korean|russian|portuguese|arabic|hindi|latin
    |dutch|polish|turkish|python|javascript|typescript|java|rust|go|c\+\+|c\#|markdown|json|html|sql)"""
_QUALITY = r"""(?:bugs|errors|issues|problems|mistakes|typos|grammar|spelling|style|clarity|quality|readability|security
    |performance|correctness|speed|maintainability|vulnerabilities|sql\ injection|xss)"""
_TAIL = rf"""(?:\s*(?:
    (?:in)?to\s+{_LANGUAGE} | in\s+{_LANGUAGE}
    | (?:in|with|into|as)\s+(?:one|two|three|four|five|a\ few|\d+)\s+(?:short\s+)?(?:sentences?|words|paragraphs?|lines|bullets?
        |bullet\ points|points|parts)
    | (?:for|focusing\ on|with\ a\ focus\ on|regarding)\s+(?:(?:any|all|possible|potential|security|obvious)\s+)?{_QUALITY}
        (?:\s+(?:and|or)\s+(?:security\s+)?{_QUALITY})*
    | (?:please|carefully|thoroughly|briefly|again|now|too|first|quickly|properly|step\ by\ step|in\ detail|line\ by\ line
        |accordingly|as\ well|for\ me|completely)
    | (?:to\ use|using|with)\s+(?:async|asyncio|async/await|type\ hints|types|docstrings|comments|tests|classes|generators)
    | and\s+(?:fix|improve|test|summari[sz]e|explain|optimi[sz]e|correct|refactor|document|format|report|list)
        (?:\s+(?:it|them|any|all|the|every|\w*\s*{_QUALITY}))*
))*"""
_VERB = r"""(?:
    review|check|inspect|audit|examine|proofread|translate|summari[sz]e|explain|describe|analy[sz]e|improve|optimi[sz]e
    |refactor|rewrite|rephrase|reformat|format|simplify|shorten|extend|expand|finish|complete|fix|correct|debug|test
    |document|comment|annotate|convert|port|clean\ up|polish|edit|update|modify|change|adapt|apply|use|follow|implement
    |build|read|look\ at|evaluate|assess|rate|grade|critique|compare|merge|combine|continue|resume|redo|repeat
    |verify|validate|speed\ up|make\ sense\ of|work\ on|go\ through|extract|answer|handle|address|incorporate|reply\ to
)"""
_PLAIN_VERB = r"""(?:
    review|proofread|translate|summari[sz]e|explain|improve|optimi[sz]e|refactor|rewrite|rephrase|simplify|shorten|fix|correct
    |debug|comment|polish|edit
)"""
_PAST = r"""(?:wrote|made|built|created|produced|generated|gave|sent|showed|proposed|suggested|described|mentioned
    |discussed|talked\ about|spoke\ about|agreed(?:\ on|\ upon)?|decided(?:\ on)?|planned|designed|outlined|said|told\ you
    |asked\ for|asked\ you|requested|wanted|specified|started|did|posted|shared|pasted|delivered|reported|reviewed)"""
_BEFORE = r"(?:\s+(?:earlier|before|previously|above|last\ time|just\ now|yesterday|so\ far|already|in\ this\ (?:chat|conversation)))?"
_SAID = rf"""(?:
    (?:what|everything|all|exactly\ what)\s+(?:that\s+)?(?:you|we|i|he|she|they|the\ user|the\ client|the\ customer)
        (?:\s+(?:just|have|has|had|already))*\s+{_PAST}{_BEFORE}
    | (?:the|that|this|those|these)\s+(?:\w+\s+){{1,3}}?(?:that\s+|which\s+)?
        (?:you|we|i|he|she|they|the\ user|the\ client|the\ customer)(?:\s+(?:just|have|has|had|already))*\s+{_PAST}{_BEFORE}
    | (?:the|our|your|my|this|that)\s+(?:\w+\s+)?(?:user|client|customer)'s\s+(?:\w+\s+)?{_NOUN}
    | (?:the|a)\s+same\s+\w+(?:\s+\w+)?\s+as\s+(?:before|above|earlier|last\ time|previously)
    | (?:the\s+)?{_NOUN}\s+(?:from|of|in)\s+(?:the\s+|our\s+)?(?:{_ELSEWHERE}\s+{_NOUN}|last\ time|before|earlier|above
        |(?:this|our|the)\s+(?:conversation|chat|discussion))
)"""
_OBJECT = rf"(?:{_SAID}|{_THING})"
_COURTESY = r"(?:(?:please|now|then|also|next|ok|okay|first|can\ you|could\ you|kindly)[,\s]\s*)*"
_MADE = r"""(?:\w+[\s-]+){0,3}?(?:comments?|docstrings?|tests?|documentation|docs|type\ hints|types|logging
    |error\ handling|a\ summary|a\ review|a\ readme|examples?|validation|a\ title|an\ introduction|a\ conclusion)"""

ENGLISH_DANGLING = rf"""{_COURTESY}(?:
        {_VERB}\s+(?:all\s+|only\s+|just\s+|both\s+)?(?:of\s+)?{_OBJECT}{_TAIL}
        | {_PLAIN_VERB}\s+{_PLAIN_THING}{_TAIL}
        | (?:add|write|create|generate|provide|insert|give|make)\s+(?:me\s+)?{_MADE}\s+(?:to|for|of|on|in|into)\s+(?:{_OBJECT}|{_PLAIN_THING}){_TAIL}
        | (?:make|turn)\s+{_OBJECT}\s+(?:better|faster|shorter|longer|clearer|simpler|nicer|more\ \w+|into\ \w+)
        | (?:do|repeat|apply)\s+(?:the\s+same|it|this|that)(?:\s+(?:thing|steps?))?(?:\s+(?:again|now|as\ (?:before|above|last\ time)
            |(?:for|to|with|on)\s+(?:the\s+(?:other|next|rest|remaining|second|third)(?:\s+(?:one|ones|\w+))?|it|them)))?
        | (?:continue|go\ on|proceed|carry\ on|keep\ going|resume|go\ ahead)(?:\s+(?:with|on|to|from))?
            (?:\s+(?:the|your|that|this|where))?(?:\s+(?:next|rest|remaining|previous|other|last|same|second|third))?
            (?:\s+(?:part|parts|step|steps|section|chapter|task|tasks|one|work|item|you\ (?:left\ off|stopped)
                |we\ (?:left\ off|stopped)|i\ (?:left\ off|stopped)))?{_TAIL}
        | (?:do|start|finish|begin|take|start\ with)\s+(?:the\s+)(?:next|remaining|last|second|third|other)\s+(?:part|step|task|one|item|section)
        | (?:as|like)\s+(?:discussed|mentioned|described|agreed|said|stated|requested|explained|before|above)
            (?:\s+(?:above|before|earlier|previously|last\ time))?
        | (?:implement|build|do|make|write|create|proceed|continue|change|fix)\s+(?:it\s+|this\s+|that\s+)?(?:exactly\s+)?
            (?:as|like)\s+(?:(?:we|you|i|the\ user)\s+)?(?:just\s+)?{_PAST}{_BEFORE}
        | (?:what(?:'s|\s+is|\s+are)|is|are)\s+(?:wrong\s+with\s+)?{_THING}(?:\s+(?:wrong|correct|ok|good|right))?
    )"""
"""A whole sentence, without its full stop."""

ENGLISH_CLAUSE = rf"""(?:and\s+|then\s+|also\s+|please\s+|finally\s+|but\s+)*(?:
        focus|focusing|pay|give|return|rate|list|report|explain|point|be|keep|do\s+not|don't|use|output|respond|reply|answer
        |score|suggest|include|check|look|find|fix|tell|note|mark|show|make\ sure|ensure|write\s+in|limit|stick|no\s|only
        |preserve|especially|particularly|concentrate|highlight|provide|with\s+a\ focus|save|deliver|summari[sz]e|improve
    )\b(?=.{{0,120}}$) | {_COURTESY}{_VERB}\s+{_THING}{_TAIL}$"""
"""The beginning of a clause that says how to work, not on what."""
