"""Who speaks in a message, and what: names of parties and of contents, in whatever spelling.

Where no usual name says who speaks, that name is taken under which every message of a list has a
party that is known, or the name of a program beside another one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, cast

Speaker = Literal["system", "user", "assistant", "tool"]

_CALLED = {
    "system": "system systemmessage developer",
    "user": """user usermessage human humanmessage customer client visitor caller end_user enduser
        usr prompter seeker apprentice incoming usuario utilisateur nutzer
        用户 用戶 提问者 客户 顾客 访客 问""",
    "assistant": """assistant apimessage agent outgoing ai aimessage aimessagechunk bot chatbot
        robot machine gpt model business automated_agent recommender wizard moss
        asistente assistent 助手 助理 模型 客服 机器人 智能助手 坐席 答""",
    "tool": """tool toolmessage functionmessage function_call_output function observation
        function_response document context retrieval retriever 工具""",
}
SPEAKERS: Mapping[str, Speaker] = {
    name: cast(Speaker, one) for one, names in _CALLED.items() for name in names.split()
}
"""Names of who speaks, as servers, data sets and exports write them."""

_ROLE = (
    "role", "from", "speaker", "author", "type", "sender", "direction", "event", "角色", "发言人",
    "obj", "participant", "sender_type", "who",
)  # fmt: skip
_CONTENT = (
    "content", "parts", "value", "text", "message", "body", "output", "payload", "items", "内容",
    "消息内容", "mes", "utterance", "says", "msg", "blocks", "steps",
)  # fmt: skip
_BY_USER = frozenset({"iscreatedbyuser", "isuser", "iscustomer", "fromuser"})
"""Flags that say of any object whether a user speaks."""

_FLAGS: Mapping[str, Speaker] = {
    "ishuman": "user", "isbot": "assistant", "isai": "assistant", "frombot": "assistant",
}  # fmt: skip
"""Flags that say so in a list of messages; elsewhere they say who wrote a text."""

_PROGRAM = re.compile(r"bot\b|assistant|\bai\b|gpt|助手|客服|机器人", re.IGNORECASE)
"""What is in the name of a program that answers."""

_TIME = re.compile(r"\s*\d{1,4}[-/.年:]\d{1,2}")
"""The beginning of a time: no text that anybody says."""


def speaker_of(one: Mapping[str, Any]) -> Speaker | None:
    """Return who speaks in a message, by the usual names; None where they do not say."""
    for name, value in one.items():
        if isinstance(value, bool) and _flag(name) in _BY_USER:
            return "user" if value else "assistant"
    for name in _ROLE:
        said = one.get(name, one.get(name.capitalize()))
        if isinstance(said, Mapping):
            said = next((said[key] for key in ("role", "type", "label") if said.get(key)), None)
        if isinstance(said, str) and (known := _speaker_called(said)):
            return known
    return None


def _flag(name: Any) -> str:
    return str(name).replace("_", "").lower()


def _speaker_called(name: str) -> Speaker | None:
    """Return who is called so, also in the name of a message ("user_message", "0_Wizard")."""
    name = name.casefold().strip()
    bare = re.sub(r"^\d+_|[\s_-]+(?:message|msg|turn)$", "", name)
    return SPEAKERS.get(name) or SPEAKERS.get(bare)


def content_of(one: Mapping[str, Any]) -> Any:
    """Return what a message says, by the usual names; None where they do not tell."""
    named = (name for both in _CONTENT for name in (both, both.capitalize()))
    found = next((one[name] for name in named if one.get(name) is not None), None)
    if found is None and isinstance(one.get("data"), Mapping):
        return content_of(one["data"])
    return found


def is_message(one: Any) -> bool:
    """Return whether `one` is an object that says who speaks and what."""
    return isinstance(one, Mapping) and speaker_of(one) is not None and content_of(one) is not None


def with_speakers(listed: list[Any]) -> list[Any]:
    """Return messages that say under a name of their own who speaks, with `role` and `content`; a
    list of anything else as it is.
    """
    objects = [one for one in listed if isinstance(one, Mapping)]
    if len(objects) < 2 or any(map(speaker_of, objects)):
        return listed
    for key in objects[0]:
        names = [_party(key, one.get(key)) for one in objects]
        speakers = [_speaker_called(name) for name in names]
        if None in speakers or not {"user", "assistant"} <= {*speakers}:
            speakers = _by_program(names)
        if speakers:
            return [
                {**one, "role": speaker, "content": _said(one, key)}
                for one, speaker in zip(objects, speakers, strict=True)
            ]
    return listed


def _party(key: Any, value: Any) -> str:
    """Return the name of who speaks, where a value under `key` may be one."""
    if isinstance(value, bool) and (true := _FLAGS.get(_flag(key))):
        return true if value else ("user" if true == "assistant" else "assistant")
    return value if isinstance(value, str) else ""


def _by_program(names: list[str]) -> list[Speaker | None]:
    """Return who speaks where two parties have names, of which one is a program's; [] elsewhere."""
    programs = {name for name in names if _PROGRAM.search(name)}
    if len({*names}) != 2 or len(programs) != 1 or "" in names:
        return []
    return ["assistant" if name in programs else "user" for name in names]


def _said(one: Mapping[str, Any], key: Any) -> Any:
    """Return what a message says, else its list of parts, or the longest of its texts but that
    under `key`.
    """
    if (told := content_of(one)) is not None:
        return told
    rest = [value for name, value in one.items() if name != key]
    parts = [value for value in rest if isinstance(value, list)]
    texts = [value for value in rest if isinstance(value, str) and not _TIME.match(value)]
    return parts[0] if parts else max(texts, key=len, default=None)
