"""What a good model answers to the calls of the baselines, in the world of `tests.faults.brain`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.faults.brain import World

# The first that a request holds names its kind.
_MARKS = (
    ("relation", "You compare two answers to the same question.", "你要比较同一个问题的两个回答"),
    ("supported", "Does the text above support the sentence?", "上面的文本支持这个句子吗"),
    ("p_true", "Is the proposed answer true or false?", "备选答案正确吗"),
    ("confidence", "How likely is it that this answer is correct?", "这个回答正确的可能性有多大"),
    ("conclude_reasoning", "Somebody has thought this through:", "已有的思路："),
    ("classify", "How much has to be looked up", "需要查多少资料"),
    ("plan", "would show whether the facts in the draft", "它们的答案能说明草稿中的事实"),
    ("check_answer", "in one short, factual sentence.", "请用一句简短、符合事实的话回答问题"),
    ("check_agrees", "a draft and the answer to a question that", "以及一个核查问题的答案"),
    ("final", "Write the final answer to a question.", "请写出问题的最终答案"),
    ("critique", "You check answers by means of passages", "你负责依据查到的资料核查回答"),
    ("summary", "Several people answered a question", "几个人回答了同一个问题"),
    ("debate_others", "Other people answered the same question", "对同一个问题，其他人的回答"),
    ("debate", "First give your reasons in a few", "先用几句简短的话说明理由，然后另起一行"),
    ("concepts", "List the key concepts of the sentence", "请列出下面句子中的关键概念"),
    ("concept_question", "asks whether the sentence is right about", "询问句子中关于"),
    ("validate_concept", "Does the evidence agree with what the", "证据与句子中关于"),
    ("repair_sentence", "You repair a sentence.", "你负责修正一个句子"),
    ("claims", "List the claims in the answer", "请列出回答中可以查证的论断"),
    ("claim_queries", "different queries for a search engine", "条不同的搜索引擎查询"),
    ("verify_claim", "Do the passages confirm this claim?", "资料证实这个论断吗"),
    ("fact_questions", "questions that ask for each fact", "请针对其中可以查证的每个事实"),
    ("agrees_fact", "a question about one of its facts", "关于其中一个事实的问题"),
    ("edit", "You correct single facts in a text.", "你负责改正文字中的个别事实"),
    ("knowledge", "Write down the background knowledge", "请写出回答下面的问题所需的背景知识"),
    ("factual", "Is everything in this text factually right?", "下面这段话里的内容全部符合事实吗"),
    ("refine_knowledge", "This background knowledge may hold errors.", "这段背景知识可能有错"),
    ("agrees_known", "Does the answer agree with the background", "这个回答与背景知识一致吗"),
    ("refine_answer", "This answer may disagree with the background", "可能与背景知识不一致"),
    ("relevant", "Does this answer give what the question asks", "给出了问题所问的内容吗"),
    ("answer_known", "Rely on the background knowledge.", "请依据背景知识，用一两句"),
    ("choice_questions", "multiple-choice questions about facts", "单项选择题"),
    ("choice", "Which option is right by the text alone?", "只根据文本，哪个选项正确"),
    ("step", "Think the matter through in short", "用简短的句子一步一步地推理"),
    ("reasoned", "First think the matter through", "先用几句简短的话把思路理清楚"),
)
KINDS = tuple(kind for kind, *_ in _MARKS)

VERDICTS = {
    **dict.fromkeys(
        ("check_agrees", "critique", "validate_concept", "verify_claim", "agrees_fact"), "question"
    ),
    **dict.fromkeys(("p_true", "confidence", "agrees_known"), "answer"),
    **dict.fromkeys(("supported", "choice"), "sentence"),
    "factual": "knowledge",
}
"""Kinds of calls that decide something, and what."""

REWRITES = ("final", "repair_sentence", "edit", "refine_answer", "summary")
"""Kinds of calls whose reply may take the place of an answer that is there already."""

ANSWERS = ("reasoned", "step", "debate_draft", "answer_known")
"""Kinds of calls whose reply is the first answer."""


def kind_of(whole: str, temperature: float) -> str | None:
    """The kind of a baseline's call; None for one of another method."""
    for kind, *marks in _MARKS:
        if any(mark in whole for mark in marks):
            # The first agent's first answer is the draft.
            return "debate_draft" if kind == "debate" and not temperature else kind
    return None


def answer(kind: str, world: World, turns: list[tuple[str, str]], whole: str) -> str | None:
    """The good reply to a baseline's call; None for one of another method."""
    said = next(text for speaker, text in reversed(turns) if speaker == "user")
    if len(turns) > 2 and turns[-2][0] == "assistant" and kind != "debate_others":
        # A reminder: what is asked for stands before it.
        said = turns[-3][1]
    english = world.yes_no[0] == "YES"
    yes, no = world.yes_no
    match kind:
        case "relation":
            first, second = (
                _after(said, "First: ", "第一个："),
                _after(said, "Second: ", "第二个："),
            )
            return world.verdicts[_wrong(first) != _wrong(second)]
        case "supported":
            text, sentence = _after(said, "Text: ", "文本："), _after(said, "Sentence: ", "句子：")
            return ("Yes", "No")[_wrong(text) != _wrong(sentence)] if english else yes
        case "p_true":
            return world.same[_wrong(_after(said, "Proposed answer: ", "备选答案："))]
        case "confidence":
            return "80"
        case "classify":
            return "B"
        case "plan" | "fact_questions":
            asks = ("Where was Ada Brandt born?", "In which year was Ada Brandt born?")
            asks = asks if english else ("阿达·布兰特出生于何地？", "阿达·布兰特生于哪一年？")
            return "\n".join(f"{number}. {text}" for number, text in enumerate(asks, 1))
        case "check_answer":
            return world.evidence[0]
        case "check_agrees":
            return world.yes_no[_wrong(_after(said, "Draft: ", "草稿："))]
        case "critique":
            verdict = world.verdicts[_wrong(_after(said, "Proposed answer: ", "拟定的回答："))]
            form = "Reasoning: The passages tell.\nVerdict: {}"
            return (form if english else "理由：资料写明了。\n结论：{}").format(verdict)
        case "debate" | "debate_draft":
            return _reasoned(world, english, right=kind == "debate")
        case "debate_others":
            own = next((text for speaker, text in reversed(turns) if speaker == "assistant"), "")
            return own or _reasoned(world, english, right=True)
        case "reasoned":
            return _reasoned(world, english, right=False)
        case "conclude_reasoning" | "summary":
            return world.other_short
        case "concepts":
            return "\n".join(f"{n}. {c}" for n, c in enumerate(world.concepts[:2], 1))
        case "concept_question":
            named = re.search(r"[\"“](.+?)[\"”]", said)
            return world.asks.format(named[1] if named else world.concepts[0])
        case "validate_concept":
            return world.verdicts[_wrong(_after(said, "Question about it: ", "相关问题："))]
        case "verify_claim":
            return world.verdicts[_wrong(_after(said, "Claim: ", "论断："))]
        case "agrees_fact":
            place = "Where" in _after(said, "Question: ") or "何地" in _after(said, "问题：")
            return world.verdicts[_wrong(_after(said, "Text: ", "文字：")) and place]
        case "claims":
            claims = ("Ada Brandt was born in Utrecht.", "Ada Brandt was born in 1904.")
            claims = (
                claims if english else ("阿达·布兰特出生于乌得勒支。", "阿达·布兰特生于1904年。")
            )
            return "\n".join(f"{number}. {text}" for number, text in enumerate(claims, 1))
        case "claim_queries":
            return (
                "1. Ada Brandt birth\n2. Ada Brandt Delft"
                if english
                else "1. 布兰特 出生\n2. 布兰特"
            )
        case "knowledge":
            return world.draft
        case "final" | "repair_sentence" | "edit" | "refine_knowledge" | "refine_answer":
            return world.right
        case "answer_known":
            return world.draft
        case "factual":
            return no if _wrong(said) else yes
        case "agrees_known":
            return no if _wrong(_after(said, "Answer: ", "回答：")) else yes
        case "relevant":
            return yes
        case "choice_questions":
            wrong = ["Delft", "Leiden", "Rome"] if english else ["代尔夫特", "莱顿", "罗马"]
            asked = {"question": world.question, "right": world.concepts[0], "wrong": wrong}
            return json.dumps({"questions": [asked]}, ensure_ascii=False)
        case "choice":
            text = _after(said, "Text: ", "文本：")
            options = re.findall(r"^([A-F])\. (.+)$", said, re.M)
            return next((letter for letter, one in options if one in text), options[-1][0])
        case "step":
            # Two sentences, of which the first is taken.
            return world.reasoning if english else world.reasoning + world.evidence[1]
        case _:
            return None


def _reasoned(world: World, english: bool, *, right: bool) -> str:
    said = world.other_short if right else world.short
    reasons = world.right if right else world.reasoning
    return f"{reasons}\n{'Answer: ' if english else '答案：'}{said.rstrip('.。')}"


def _wrong(text: str) -> bool:
    return "Utrecht" in text or "乌得勒支" in text


def _after(said: str, *labels: str) -> str:
    """What stands behind a label, to the end of its line."""
    found = re.search(f"^(?:{'|'.join(labels)})(.*)$", said, re.M)
    return found[1] if found else ""
