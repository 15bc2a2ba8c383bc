# A workflow script: it is run by `xclaw workflow run`, not by Python. See docs/workflows.md.
# ruff: noqa: F821, B018 - the functions are those of workflows, and its last expression is its answer
# pyright: basic, reportUndefinedVariable=false, reportUnusedExpression=false

CODE = """
def average(numbers):
    return sum(numbers) / len(numbers)

def read_numbers(path):
    return [float(line) for line in open(path)]
"""
VIEWS = {
    "errors": "What happens on empty or wrong input?",
    "resources": "Is everything that is opened closed again?",
    "names": "Do the names say what the functions do?",
}
FOUND = {"type": "object", "properties": {"problems": {"type": "array", "items": {"type": "string"}}}}

phase("review")
reviews = parallel(
    [
        agent(
            "reviewer",
            f"{question} Answer with a list of problems, empty if there are none.\n{CODE}",
            schema=FOUND,
        )
        for question in VIEWS.values()
    ]
)

problems = {}
for view, review in zip(VIEWS, reviews, strict=True):
    if not review.ok:
        log(f"no review of {view}: {review.reason}")
    elif review.data.get("problems"):
        problems[view] = review.data["problems"]
log(f"{sum(len(found) for found in problems.values())} problems in {len(problems)} of {len(VIEWS)} views")

report = "Nothing to report."
if problems:
    phase("report")
    listed = "\n".join(f"- {view}: {'; '.join(found)}" for view, found in problems.items())
    report = agent("writer", f"Write a review of at most five sentences from these findings:\n{listed}").data
{"problems": problems, "report": report}
