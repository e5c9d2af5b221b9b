"""Conversations that are one text: prompts as templates of models write them, and transcripts.

Data for training and logs of completions hold whole conversations with marks between what each
party says: ChatML, the headers of Llama 3, [INST], "### Human:", "USER: ... ASSISTANT:".
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Uttered(NamedTuple):
    """What one party says, by the name that the text gives it."""

    role: str
    text: str


_ROLE = (
    r"(?P<role>system|developer|user|human|assistant|gpt|bot|model|ai|tool|function|ipython"
    r"|observation)"
)
# A mark names who speaks from there on.
_MARKS = tuple(
    re.compile(one, re.IGNORECASE)
    for one in (
        rf"<\|im_start\|>\s*{_ROLE}[^\n<]{{0,40}}\n",
        rf"<\|start_header_id\|>\s*{_ROLE}\s*<\|end_header_id\|>\s*",
        rf"<\|start\|>\s*{_ROLE}[^<\n]{{0,40}}(?:<\|channel\|>(?P<channel>\w+)[^<\n]{{0,40}})?<\|message\|>",
        rf"<start_of_turn>\s*{_ROLE}\s*\n",
        rf"<[|｜]\s*{_ROLE}\s*[|｜]>\s*",
        rf"<{_ROLE}>\s*",
        rf"\[\|\s*{_ROLE}\s*\|\]\s*",
        r"<\|(?P<role>system|user|chatbot)_token\|>",
        r"(?:^|(?<=\S))\s*###\s*(?P<role>human|user|assistant|system|instruction|input|response)\s*:",
    )
)
_LINES = re.compile(
    r"^\s*\**(?P<role>system|user|human|assistant|ai|bot|function response|用户|助手)"
    r"\**\s*[:：]\**[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_INLINE = re.compile(r"(?:\A|(?<=\s)|(?<=</s>))(?P<role>USER|ASSISTANT|FUNCTION RESPONSE): ?")
_INST = re.compile(r"\[INST\](?P<asked>.*?)\[/INST\](?P<said>.*?)(?=\[INST\]|\Z)", re.DOTALL)
_SYSTEM = re.compile(r"<<SYS>>(?P<text>.*?)<</SYS>>", re.DOTALL)
_ENDS = re.compile(
    r"<\|(?:im_end|eot_id|eom_id|end|end_of_text|endoftext|begin_of_text|return)\|>"
    r"|<\|(?:start|end)_of_turn_token\|>|<end_of_turn>|<eos>|<bos>|</?s>|<eo[hmtc]>"
    r"|</(?:system|user|human|assistant|model)>|<[｜|](?:begin|end)▁of▁sentence[｜|]>",
    re.IGNORECASE,
)
_BEGINS = re.compile(r"\A<\|[\w-]+\|>:?\s*")


def transcript(text: str) -> list[Uttered]:
    """Return who says what in a text that is a whole conversation; [] for any other text.

    A user and an assistant have to speak in it. Names at the beginnings of lines ("Human: ...")
    count only where the text begins with one: an answer may hold such a line.
    """
    if "[INST]" in text and (found := list(_INST.finditer(text))):
        return _instructed(found)
    for pattern in _MARKS:
        if said := _between(text, list(pattern.finditer(text))):
            return said
    for pattern in (_LINES, _INLINE):
        marks = list(pattern.finditer(text))
        begins = marks and (pattern is _INLINE or not text[: marks[0].start()].strip())
        if begins and (said := _between(text, marks)):
            return said
    return []


def _instructed(found: list[re.Match[str]]) -> list[Uttered]:
    said: list[Uttered] = []
    for one in found:
        asked = one["asked"]
        if system := _SYSTEM.search(asked):
            said.append(Uttered("system", bare_text(system["text"])))
            asked = asked[: system.start()] + asked[system.end() :]
        said.append(Uttered("user", bare_text(asked)))
        if answer := bare_text(one["said"]):
            said.append(Uttered("assistant", answer))
    return said


def _between(text: str, marks: list[re.Match[str]]) -> list[Uttered]:
    """Return what stands behind each mark, where both a user and an assistant have one."""
    names = [_SAME.get(name := one["role"].lower(), name) for one in marks]
    if not {"user", "assistant"} <= set(names):
        return []
    ends = [*(one.start() for one in marks[1:]), len(text)]
    said: list[Uttered] = []
    for name, one, end in zip(names, marks, ends, strict=True):
        told = bare_text(text[one.end() : end])
        if (one.groupdict().get("channel") or "final") != "final":
            # What a model thinks, or asks of a tool.
            continue
        if told and said and said[-1].role == name == "user":
            # An instruction and what it is about.
            said[-1] = Uttered(name, f"{said[-1].text}\n{told}")
        elif told:
            said.append(Uttered(name, told))
    return said


_SAME = {
    "function response": "tool",
    "ipython": "tool",
    **dict.fromkeys(("human", "instruction", "input", "用户"), "user"),
    **dict.fromkeys(("gpt", "bot", "chatbot", "model", "ai", "response", "助手"), "assistant"),
}


def bare_text(text: str) -> str:
    """Return a text without the marks that templates put at the beginning and end of a turn."""
    return _BEGINS.sub("", _ENDS.sub("", text).strip()).strip()
