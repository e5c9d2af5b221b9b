"""Who speaks in a message, and what: names of parties and of contents, in whatever spelling.

Where no usual name says who speaks, that name is taken under which every message of a list has a
party that is known, or the name of a program beside another one.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from pipelines.text import has_han

Speaker = Literal["system", "user", "assistant", "tool"]

_CALLED = {
    "system": "system systemmessage developer sys",
    "user": """user usermessage end-user end_user enduser human humanmessage customer client visitor
        caller usr prompter seeker apprentice incoming usuario utilisateur nutzer patient student
        learner external 用户 用戶 提问者 客户 顾客 访客 问 患者 学生""",
    "assistant": """assistant apimessage agent outgoing ai aimessage aimessagechunk bot chatbot
        robot machine gpt model business automated_agent recommender wizard moss
        internal application app asistente assistent 助手 助理 模型 客服 机器人 智能助手 坐席 答""",
    "tool": """tool toolmessage functionmessage function_call_output function observation
        function_response tool_execution_result document context retrieval retriever 工具""",
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
    "content", "contents", "parts", "value", "text", "message", "body", "output", "payload",
    "items", "内容", "消息内容", "mes", "utterance", "says", "msg", "blocks", "steps", "prompt",
)  # fmt: skip
_BY_USER = frozenset({
    "iscreatedbyuser", "isuser", "iscustomer", "fromuser", "inbound", "isinbound", "fromcustomer",
    "incoming", "isincoming",
})  # fmt: skip
"""Flags that say of any object whether a user speaks."""

_FLAGS: Mapping[str, Speaker] = {
    "ishuman": "user", "isbot": "assistant", "isai": "assistant", "frombot": "assistant",
    "bot": "assistant", "automated": "assistant", "fromagent": "assistant",
}  # fmt: skip
"""Flags that say so in a list of messages; elsewhere they say who wrote a text."""

_OF_BOTS = frozenset({"botid", "botprofile", "botname"})
"""Names that only what a program says has in a list of messages."""

_PROGRAM = re.compile(
    r"bot\b|assistant|\bai\b|gpt|gemini|claude|qwen|llama|deepseek|mistral|grok|助手|客服|机器人",
    re.IGNORECASE,
)
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
            names = ("role", "type", "label", "sender_type")
            told = next((said[key] for key in names if said.get(key)), None)
            said = told if isinstance(told, str) else _only_party(said)
        if isinstance(said, str) and (known := _speaker_called(said)):
            return known
    return None


def _only_party(held: Mapping[str, Any]) -> str:
    """Return the only name in an object that says of its value who it is: {"user": {...}}."""
    names = [str(name) for name, value in held.items() if isinstance(value, Mapping)]
    known = [name for name in names if _speaker_called(name)]
    return known[0] if len(known) == len(names) == 1 else ""


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
    told = (one[name] for name in named if one.get(name) is not None and not _are_ids(name, one))
    found = next(told, None)
    if found is None and isinstance(one.get("data"), Mapping):
        return content_of(one["data"])
    return found


def _are_ids(name: str, one: Mapping[str, Any]) -> bool:
    """Return whether blocks of a message lie elsewhere, and only their ids stand here."""
    held = one[name]
    return name == "blocks" and isinstance(held, list) and all(isinstance(b, str) for b in held)


def is_message(one: Any) -> bool:
    """Return whether `one` is an object that says who speaks and what."""
    return isinstance(one, Mapping) and speaker_of(one) is not None and content_of(one) is not None


def with_speakers(listed: list[Any]) -> list[Any]:
    """Return messages that say under a name of their own who speaks, with `role` and `content`; a
    list of anything else as it is.
    """
    objects = [one for one in listed if isinstance(one, Mapping)]
    if len(objects) < 2 or any(map(_holds_message, objects)):
        return listed
    if all(map(speaker_of, objects)):
        told = any(content_of(one) is not None for one in objects)
        return listed if told else [{**one, "content": _deep_in(one)} for one in objects]
    if not any(True for _ in _texts_in(objects)):
        # People, and nothing that they say.
        return listed
    usual = list(map(party_named, objects))
    kinds = [str(one.get("type") or "") for one in objects]
    if any(map(speaker_of, objects)) and not (_by_the_other(usual) or _by_program(kinds)):
        return listed
    for key in ("", "type", *dict.fromkeys(name for one in objects for name in one)):
        names = [_party(key, one.get(key)) for one in objects] if key else usual
        speakers = [_speaker_called(name) for name in names]
        if None in speakers or not {"user", "assistant"} <= {*speakers}:
            speakers = _by_program(names) or ([] if key == "type" else _by_the_other(names))
        told = [_said(one, key) for one in objects] if speakers else []
        if _flag(key) in _OF_BOTS and not all(isinstance(one, str) for one in told):
            continue
        if speakers:
            return [
                {**one, "role": speaker, "content": said}
                for one, speaker, said in zip(objects, speakers, told, strict=True)
            ]
    return listed


def _holds_message(one: Mapping[str, Any]) -> bool:
    """Return whether an object is only put around a message that says itself who speaks."""
    held = content_of(one)
    return isinstance(held, Mapping) and speaker_of(held) is not None


def _deep_in(one: Mapping[str, Any]) -> str | None:
    """Return the longest text in any depth of a message that holds none under a usual name."""
    held = [value for name, value in one.items() if name not in _ROLE and not _ASKS.search(name)]
    return max(_texts_in(held), key=len, default=None)


_ASKS = re.compile(r"call|tool|function|arg|meta|time|date", re.IGNORECASE)
"""What is in names of calls of tools, and of what is told about a message."""


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _texts_in(one)
    elif isinstance(value, Mapping):
        named = [value[name] for name in _CONTENT if value.get(name)]
        yield from _texts_in(named or [*value.values()])
    elif isinstance(value, str) and not _TIME.match(value) and has_words(value):
        yield value


def has_words(text: str) -> bool:
    """Return whether a text is more than one word, as names, ids and kinds are; any Chinese one
    is.
    """
    return len(text.split()) > 1 or has_han(text)


def party_named(one: Mapping[str, Any]) -> str:
    """Return the name of who speaks under one of the usual names; "" without any."""
    held = (one.get(name) for name in _ROLE if name not in ("type", "event"))
    return next((name for name in held if isinstance(name, str) and name), "")


def _by_the_other(names: list[str]) -> list[Speaker | None]:
    """Return who speaks where of two parties one is known, as the other one to it; [] elsewhere."""
    known: dict[str, Speaker | None] = {name: _speaker_called(name) for name in names}
    if len(known) != 2 or "" in known:
        return []
    said = {one for one in known.values() if one in ("user", "assistant")}
    if len(said) != 1 or list(known.values()).count(None) != 1:
        return []
    other: Speaker = "assistant" if said == {"user"} else "user"
    return [known[name] or other for name in names]


def _party(key: Any, value: Any) -> str:
    """Return the name of who speaks, where a value under `key` may be one."""
    if _flag(key) in _OF_BOTS:
        return "assistant" if value else "user"
    if isinstance(value, bool) and (true := _FLAGS.get(_flag(key))):
        return true if value else ("user" if true == "assistant" else "assistant")
    if isinstance(value, Mapping):
        # What is told of an author may say whether it is a program.
        told = (_party(name, held) for name, held in value.items() if isinstance(held, bool))
        return next(filter(None, told), "")
    return value if isinstance(value, str) else ""


def named_apart(messages: list[Any]) -> list[Any]:
    """Return messages whose names contradict all of their roles with the roles that the names tell:
    each agent of AutoGen keeps a conversation as the one who is the assistant in it.
    """
    objects = [one for one in messages if isinstance(one, Mapping)]
    names = [one.get("name") for one in objects]
    if len(objects) < max(2, len(messages)) or not all(isinstance(one, str) for one in names):
        return messages
    told = _by_the_other(cast(list[str], names))
    if not told or any(map(operator.eq, told, map(speaker_of, objects))):
        return messages
    return [{**one, "role": speaker} for one, speaker in zip(objects, told, strict=True)]


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
    rest = [value for name, value in one.items() if name != key and not _ASKS.search(str(name))]
    if deep := max(_texts_in(rest), key=len, default=None):
        return deep
    parts = [value for value in rest if isinstance(value, list)]
    texts = [value for value in rest if isinstance(value, str) and not _TIME.match(value)]
    return parts[0] if parts else max(texts, key=len, default=None)


# Messages whose authors are told elsewhere.

_PEOPLE_DEEP = 3


def with_authors(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record in which people are listed apart from what they say, each message with the
    `role` of its author; any other record as it is.
    """
    people: dict[str, Speaker] = {}
    for listed in _lists_in(record, _PEOPLE_DEEP):
        for one in listed:
            role = _role_among(one) if not _says_anything(one) else None
            ids = (value for value in one.values() if isinstance(value, str | int))
            people |= dict.fromkeys(map(str, ids), role) if role else {}
    if not {"user", "assistant"} <= {*people.values()}:
        return record
    return _by_author(record, people)


def _lists_in(value: Any, deeper: int) -> Iterator[list[Mapping[str, Any]]]:
    held = value.values() if isinstance(value, Mapping) else value
    for one in held if isinstance(value, Mapping | list) and deeper else ():
        if isinstance(one, list) and one and all(isinstance(each, Mapping) for each in one):
            yield one
        yield from _lists_in(one, deeper - 1)


def _role_among(one: Mapping[str, Any]) -> Speaker | None:
    texts = (value for value in one.values() if isinstance(value, str))
    return next((known for text in texts if (known := _speaker_called(text))), None)


def _says_anything(one: Mapping[str, Any]) -> bool:
    return any(isinstance(one.get(name, one.get(name.capitalize())), str) for name in _CONTENT)


def _by_author(value: Any, people: Mapping[str, Speaker]) -> Any:
    if isinstance(value, list):
        return [_by_author(one, people) for one in value]
    if not isinstance(value, Mapping):
        return value
    inner = {name: _by_author(one, people) for name, one in value.items()}
    if speaker_of(value) is None and _says_anything(value):
        named = (people.get(str(one)) for name, one in value.items() if _NAMES_AUTHOR.search(name))
        if role := next(filter(None, named), None):
            return {**inner, "role": role}
    return inner


_NAMES_AUTHOR = re.compile(r"author|participant|sender|user|from|by|purpose|speaker", re.IGNORECASE)
