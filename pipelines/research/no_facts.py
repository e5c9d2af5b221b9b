"""`python -m pipelines.research.no_facts`: what detectors say of answers that state no fact.

200 answers, 107 written by hand and the others by rule ("Never. True? No way.", "100", the texts of
errors), each to a question about the sample library drawn at random, are checked by the judges'
detectors as the page Check does it. Printed are the verdicts of each, in Markdown, and every answer
that one finds supported, confident or aligned. The table stands in docs/verdicts.md.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections import Counter
from collections.abc import Sequence

from pipelines.engine.checking import BY_JUDGES, TextToCheck, problem_of
from pipelines.evaluation.datasets.bundled import sample_rows
from pipelines.research.check_effort import check_all
from pipelines.run.events import Judged
from pipelines.run.view import MethodView
from pipelines.types import Language

ANSWERS = 200
_SEED = 11
_HAND: dict[Language, str] = {
    "en": """
N/A
n/a.
null
{}
[]
-
...
???
100
0
42
7
Never. True? No way.
Yes and no.
It is what it is.
Maybe.
Perhaps, perhaps not.
Of course!
Sure, why not?
Absolutely.
I don't know.
I am not sure.
No idea.
As an AI language model, I cannot answer that.
Sorry, I can't help with that.
Unknown
No answer
True
False
Correct.
That is a good question.
Good question!
Well, it depends.
Who knows?
What do you mean?
Can you rephrase the question?
Let me think about it.
Thank you!
Hello! How can I help you today?
Here is the answer:
The answer is as follows.
TODO
undefined
NaN
lorem ipsum dolor sit amet
asdf
xyz
!!!
OK
Never.
Always.
Nothing.
Something happened.
Things are like that.
It was a long time ago.
Somewhere.
Somebody did it.
Once upon a time.
Many people say so.
It is well known.
Error: upstream request timeout
502 Bad Gateway
503 Service Unavailable
504 Gateway Time-out
<html><head><title>502 Bad Gateway</title></head><body></body></html>
Rate limit exceeded
429 Too Many Requests
Internal Server Error
upstream connect error or disconnect/reset before headers. reset reason: connection failure
no healthy upstream
{"error": {"message": "Rate limit exceeded", "type": "rate_limit"}}
{"detail": "Internal Server Error"}
Connection refused
The request timed out. Please try again later.
The server is busy, please try again later.
Request failed with status code 500
You exceeded your current quota, please check your plan and billing details.
""",
    "zh": """
无
不知道
我不知道。
不适用
没有答案
100
可能吧。
也许是，也许不是。
当然！
是的，没错。
不是。
这是一个好问题。
请稍后再试
服务暂时不可用，请稍后再试。
系统繁忙，请稍后重试
请求超时
网络错误
502 Bad Gateway
很久以前的事了。
很多人都这么说。
众所周知。
你好，请问有什么可以帮您？
作为人工智能语言模型，我无法回答。
未知
……
空
从来没有。真的吗？不可能。
答案如下：
null
{}
""",
}
_STANCES = (
    *("Yes", "No", "Never", "Always", "Maybe", "True", "False", "No way", "Of course"),
    *("Certainly", "Right", "Wrong", "Sure", "Probably"),
)
_BEGINS = ("The answer is ", "It is ", "I think ", "In short: ")
_ENDS = ("N/A", "unknown", "yes", "no", "that", "so", "this one", "clear")
_STATUS = (
    "500 Internal Server Error",
    "502 Bad Gateway",
    "503 Service Unavailable",
    "504 Gateway Timeout",
    "429 Too Many Requests",
    "408 Request Timeout",
)


def answers(count: int = ANSWERS) -> list[TextToCheck]:
    """Return `count` answers without a fact, each with a question, always the same ones."""
    chance = random.Random(_SEED)
    asked = {
        language: [row["question"] for row in sample_rows("questions.csv", language)]
        for language in _HAND
    }
    found = [
        TextToCheck(text=text, question=chance.choice(asked[language]), language=language)
        for language, texts in _HAND.items()
        for text in texts.strip().split("\n")
    ]
    while len(found) < count:
        text = _made(len(found) % 4, chance)
        found.append(TextToCheck(text=text, question=chance.choice(asked["en"]), language="en"))
    return found[:count]


def _made(kind: int, chance: random.Random) -> str:
    if kind == 0:
        return ". ".join(chance.sample(_STANCES, chance.randint(1, 3))) + chance.choice(".?!")
    if kind == 1:
        return str(chance.choice((1, 3, 12, 55, 100, 250, 999, 1000)))
    if kind == 2:
        return chance.choice(("Error: ", "ERROR ", "HTTP ", "")) + chance.choice(_STATUS)
    return f"{chance.choice(_BEGINS)}{chance.choice(_ENDS)}."


def _verdict(method: MethodView | None) -> str:
    said = [event for event in method.judged if event.what == "answer"] if method else []
    last: Judged | None = said[-1] if said else None
    return last.verdict if last else "none"


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the answers and print the table."""
    argparse.ArgumentParser(
        prog="python -m pipelines.research.no_facts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args(arguments)
    # What holds no word at all is refused before anything is checked.
    given = [one for one in answers() if problem_of(one) is None]
    views = asyncio.run(check_all(given, BY_JUDGES))
    counts = {
        name: Counter(_verdict(view.methods.get(name)) for view in views) for name in BY_JUDGES
    }
    shown = list(dict.fromkeys(verdict for one in counts.values() for verdict in one))
    print(f"| detector | {' | '.join(shown)} |\n|---|{'---:|' * len(shown)}")
    for name, found in counts.items():
        print(f"| {name} | {' | '.join(str(found[verdict]) for verdict in shown)} |")
    for one, view in zip(given, views, strict=True):
        for name in BY_JUDGES:
            verdict = _verdict(view.methods.get(name))
            if verdict in ("supported", "confident", "aligned"):
                print(f"{name}, {verdict}: {one.question} {one.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
