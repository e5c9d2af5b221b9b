"""What a good model answers to each kind of call, and how the kind is recognised from a request.

The world is small: Ada Brandt was born in Delft in 1904. The model believes in Utrecht, so that
every method has something to find, and whatever supports Utrecht is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.faults import baselines

FALSE_DETAILS = ("Utrecht", "乌得勒支")
"""No verdict may support a text that holds one of these."""


class World(NamedTuple):
    """A language's question, what the library holds, and what is answered."""

    question: str
    evidence: tuple[str, ...]
    draft: str
    goes_on: str
    right: str
    short: str
    other_short: str
    reasoning: str
    paraphrases: tuple[str, ...]
    concepts: tuple[str, ...]
    asks: str
    reply: str
    verdicts: tuple[str, str, str]
    yes_no: tuple[str, str]
    same: tuple[str, str]
    done: str


EN = World(
    question="Where and when was Ada Brandt born?",
    evidence=("Ada Brandt was born in Delft in 1904.", "She built the tunnel at Leiden."),
    draft="Ada Brandt was born in Utrecht in 1904.",
    goes_on=" Delft in 1904.",
    right="Ada Brandt was born in Delft in 1904.",
    short="In Utrecht in 1904.",
    other_short="In Delft in 1904.",
    reasoning="Ada Brandt was an engineer. She comes from Utrecht.",
    paraphrases=(
        "In which place and year was Ada Brandt born?",
        "What are the place and the year in which Ada Brandt was born?",
    ),
    concepts=("Utrecht", "1904", "Leiden"),
    asks="Was Ada Brandt born in {}?",
    reply="Reasoning: The passages say where and when.\nVerdict: {}",
    verdicts=("True", "False", "NEI"),
    yes_no=("YES", "NO"),
    same=("True", "False"),
    done="DONE",
)
ZH = World(
    question="阿达·布兰特何时出生于何地？",
    evidence=("阿达·布兰特1904年出生于代尔夫特。", "她在莱顿修建了隧道。"),
    draft="阿达·布兰特1904年出生于乌得勒支。",
    goes_on="代尔夫特。",
    right="阿达·布兰特1904年出生于代尔夫特。",
    short="1904年，乌得勒支。",
    other_short="1904年，代尔夫特。",
    reasoning="阿达·布兰特是工程师，来自乌得勒支。",
    paraphrases=("阿达·布兰特是何时在何地出生的？", "阿达·布兰特的出生时间和出生地点是什么？"),
    concepts=("乌得勒支", "1904年", "莱顿"),
    asks="阿达·布兰特出生于{}吗？",
    reply="推理：资料写明了时间和地点。\n判断：{}",
    verdicts=("正确", "错误", "无法判断"),
    yes_no=("是", "否"),
    same=("是", "否"),
    done="完毕",
)
WORLDS = {"en": EN, "zh": ZH}

# The first that a request holds names its kind. Later ones may be quoted in the earlier.
_MARKS = (
    ("judging", "Does the text support the claim?"),
    ("format", "Reply with YES or NO only."),
    ("schema", "Tell me about an old town."),
    ("chinese", "中国的首都是"),
    ("chinese", "一个星期的第一天"),
    ("streaming", "Count from one to ten in words."),
    ("prefill", "Count from 1 to 10, with commas."),
    ("instructions", "Brandt tunnel was opened in 1904 in Utrecht"),
    ("instructions", "what did the lamp burn?"),
    ("instructions", "Ask the following question in other words."),
    ("reachable", "What is the capital of France?"),
    ("same_cl", "Below is a question with two answers."),
    ("same_cl", "下面是一个问题和两个回答"),
    ("same_cm", "Below are two pairs of a question and its answer."),
    ("same_cm", "下面是两组问答"),
    ("paraphrase", "Each version has to be a complete question"),
    ("paraphrase", "每种说法都必须是完整的问句"),
    ("translate", "Translate this question into"),
    ("translate", "请把下面的问题翻译成"),
    ("query", "Write one query for a search engine"),
    ("query", "写一条搜索引擎的查询"),
    ("repair", "You correct answers by means of passages"),
    ("repair", "你负责依据查到的资料改正回答"),
    ("extract", "List the factual details of a sentence"),
    ("extract", "请列出句子中可以查证的事实细节"),
    ("validate", "asks whether a single detail"),
    ("validate", "请针对句子中的一个细节"),
    ("statement", "Turn a question and an answer to it into"),
    ("statement", "请把问题和它的答案合成一句完整的陈述"),
    ("verify", "Decide from the passages alone"),
    ("verify", "请只依据资料判断"),
    ("recall", "Decide from what you remember"),
    ("recall", "请凭记忆判断"),
    ("revise_answer", "The evidence does not support a short answer."),
    ("revise_answer", "一个简短的答案未能得到证实"),
    ("rectify", "Some details of a sentence are"),
    ("rectify", "The evidence does not support some details"),
    ("rectify", "句子中有些细节"),
    ("candidates", "Suggest other answers to the question"),
    ("candidates", "给出这个问题的其他可能答案"),
    ("conclude", "Give the answer that follows from"),
    ("conclude", "请给出由推理得出的答案"),
    ("next", "Write the one sentence that comes next"),
    ("next", "请只写紧接着的一句话"),
    ("rephrase", "Somebody searches a library"),
    ("rephrase", "有人要在资料库中查找"),
    ("judge", "Is this statement from an answer to the question correct"),
    ("judge", "下面这句话出自对该问题的回答"),
    ("nearest", "Answer the question in one short sentence. Rely on the text."),
    ("nearest", "请用一个短句回答问题"),
    ("continue", "Somebody has begun the answer below"),
    ("continue", "下面的回答只写了开头"),
)
_SHORT = ("Now give only the answer itself", "现在只写出答案本身")
_REASON = ("look at what the question takes for granted", "先看看问题里默认了什么前提")
_AGAIN = (
    "Write only the verdict",
    "请只写判断",
    "Reply with one word only: True",
    "只回答一个字：",
)

VERDICT_KINDS = ("verify", "recall", "same_cl", "same_cm")
"""Calls for a verdict that are made once more, with a reminder, where it cannot be read."""

PROBE_KINDS = (
    *("reachable", "streaming", "logprobs", "chinese", "format"),
    *("schema", "prefill", "instructions", "judging"),
)


def kind_of(body: dict[str, Any]) -> str:
    """The kind of call that a request is."""
    turns = _turns(body)
    whole = "\n".join(text for _, text in turns)
    role, last = turns[-1]
    for kind, mark in _MARKS:
        if mark in whole:
            if kind == "reachable":
                return "prefill" if role == "assistant" else "logprobs" if _probes(body) else kind
            return "again" if last.startswith(_AGAIN) else kind
    options = body.get("parameters") or body
    if kind := baselines.kind_of(whole, options.get("temperature") or 0.0):
        return kind
    if any(mark in whole for mark in _REASON):
        kind = "short" if last.startswith(_SHORT) else "reason"
        asked = next(text for speaker, text in turns if speaker == "user")
        if any(asked == world.question for world in WORLDS.values()):
            return f"first_{kind}"
        return kind
    if role == "assistant":
        return "go_on"
    return "sample" if options.get("temperature") else "draft"


def _probes(body: dict[str, Any]) -> bool:
    return bool(body.get("logprobs") or body.get("parameters", {}).get("logprobs"))


def _turns(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and text of each turn, of either protocol."""
    messages: Sequence[dict[str, Any]] = body.get("messages") or body["input"]["messages"]
    return [
        (turn["role"], content if isinstance(content, str) else content[0]["text"])
        for turn in messages
        for content in (turn["content"],)
    ]


def answer(body: dict[str, Any]) -> str:
    """The good reply to a request."""
    turns = _turns(body)
    whole = "\n".join(text for _, text in turns)
    chinese = re.search("[\u4e00-\u9fff]", whole.replace(ZH.question, "").replace(EN.question, ""))
    # An English question about two answers, of which one is Chinese.
    world = ZH if chinese and _MIXED not in whole else EN
    return _answer(kind_of(body), world, turns, whole)


def _answer(kind: str, world: World, turns: list[tuple[str, str]], whole: str) -> str:
    known = baselines.answer(kind, world, turns, whole)
    if known is not None:
        return known
    role, last = turns[-1]
    wrong = any(detail in last.rpartition("\n\n")[2] for detail in FALSE_DETAILS)
    match kind:
        case "judging":
            return "NO" if any(no in whole for no in _NOT_SO) else "YES"
        case "schema":
            return '{"town": "York", "age": 1950}'
        case "chinese":
            return "北京" if "首都" in whole else "星期日"
        case "streaming":
            return "one two three four"
        case "prefill":
            return " 5, 6, 7" if "commas" in whole else "is."
        case "format":
            return "YES"
        case "instructions" if "lamp burn" in whole:
            return "Oil of turnips."
        case "instructions" if "other words" in whole:
            return "In which year was the Brandt tunnel opened?"
        case "instructions":
            return "The Brandt tunnel was opened in 1931 in Utrecht."
        case "reachable" | "logprobs":
            return "Paris."
        case "same_cl" | "same_cm":
            first, second = (any(f in line for f in FALSE_DETAILS) for line in _answers(last))
            return world.same[first != second]
        case "paraphrase" | "rephrase":
            return "\n".join(f"{n}. {text}" for n, text in enumerate(world.paraphrases, 1))
        case "translate":
            return (EN if "英语" in whole or "English" in last.partition("\n")[0] else ZH).question
        case "query":
            return "Ada Brandt birth Delft" if world is EN else "阿达·布兰特 出生"
        case "extract" | "validate" | "statement" | "verify" | "recall" | "again":
            return _of_ever(kind, world, turns, whole)
        case "judge":
            said = whole.rpartition("\n")[2]
            return world.yes_no[any(detail in said for detail in FALSE_DETAILS)]
        case "candidates":
            return f"- {world.other_short.rstrip('.。')}"
        case "go_on" | "continue" | "next" if kind == "next" or _is_ever(whole):
            return f"{'' if world is ZH or kind == 'next' else ' '}{world.evidence[1]}"
        case "go_on" | "continue":
            return world.goes_on
        case "reason" | "first_reason":
            return world.reasoning
        case "repair" | "revise_answer" | "conclude" | "nearest":
            return world.right if kind == "nearest" else world.other_short
        case "rectify":
            return world.right
        case "short" | "first_short":
            return world.short
        case _ if "few words" in whole or "只用几个字" in whole:
            return world.short.rstrip(".。")
        case _ if _is_ever(whole):
            return f"{world.draft}{'' if world is ZH else ' '}{world.evidence[1]}"
        case _:
            return world.draft if wrong or role == "user" else world.right


def _of_ever(kind: str, world: World, turns: list[tuple[str, str]], whole: str) -> str:
    last = turns[-1][1]
    match kind:
        case "extract":
            said = last.rpartition("Sentence:")[2].rpartition("句子：")[2]
            return "\n".join(f"- {c}" for c in world.concepts if c in said) or "None"
        case "validate":
            return world.asks.format(re.split("Detail: |细节：", last)[-1].strip())
        case "statement":
            said = re.split("Answer: |答案：", last)[-1].strip()
            return (
                f"Ada Brandt was born {said[0].lower()}{said[1:]}."
                if world is EN
                else (f"阿达·布兰特的出生时间和地点是{said}。")
            )
    asked = next(text for _, text in reversed(turns) if "Question: " in text or "问题：" in text)
    asked = re.split("Question: |问题：", asked)[-1]
    verdict = world.verdicts[any(detail in asked for detail in FALSE_DETAILS)]
    return verdict if kind == "again" else world.reply.format(verdict)


def _is_ever(whole: str) -> bool:
    return "Every sentence states facts" in whole or "每句都陈述事实" in whole


_MIXED = "Below is a question with two answers."
_NOT_SO = ("oil of whales", "invented in Paris", "opened in 1904.", "Fifty workers")


def _answers(asked: str) -> list[str]:
    marks = r"(?:First answer|Second answer|Answer|回答一|回答二|回答)[:：](.*)"
    return re.findall(marks, asked)[:2]
