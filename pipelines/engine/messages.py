"""Messages of conversations, read from whatever form a server, a data set or an export has."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pipelines.base import Frozen
from pipelines.engine.attached import attached_texts, read_json
from pipelines.engine.speakers import (
    SPEAKERS,
    Speaker,
    content_of,
    has_words,
    is_message,
    named_apart,
    party_named,
    speaker_of,
    with_speakers,
)
from pipelines.engine.transcripts import bare_text, transcript

CONVERSATIONS = (
    "messages", "conversations", "conversation", "contents", "chat_messages", "chat_history",
    "dialog", "dialogue", "turns", "chat", "activities", "history", "对话", "消息",
)  # fmt: skip
"""Names of a list of messages."""

_PAIRS = (
    ("question", "answer"), ("query", "response"), ("prompt", "response"),
    ("instruction", "output"), ("input", "output"), ("prompt", "completion"),
    ("q", "a"), ("问题", "回答"), ("问", "答"),
)  # fmt: skip
_PARTS_OF_HISTORY = {
    "system-prompt": "system", "user-prompt": "user", "tool-return": "tool", "text": "assistant",
    "REQUEST": "user", "RESPONSE": "assistant",
}  # fmt: skip
"""Kinds of parts by which Pydantic AI and DeepSeek's export tell who speaks."""

_OFFERED = ("follow_up", "suggestion", "verbose")
"""Types of messages that nobody said: what a program offers to ask next, and how it works."""

_RESULTS = ("functionResponse", "function_response", "toolResult", "tool_result")
"""What holds the result of a tool, in parts that say no type."""
_DOCUMENTS = (
    "documents", "sources", "context", "contexts", "retrieved_contexts", "retrieval_context",
    "attachments", "sourceDocuments", "source_nodes", "retriever_resources", "citations",
)  # fmt: skip
_PARTS_OF_TOOLS = ("tool_call_response", "tool_result", "tool-result", "function_call_output")

_ASKS_TOOLS = (
    "tool_call", "tool_use", "function_call", "server_tool_use", "tool-call", "code",
)  # fmt: skip

_TOOL_CALLED = re.compile(
    r"<(tool_call|function_call)>.*?(?:</\1>|\Z)|<functioncall>.*\Z", re.DOTALL | re.IGNORECASE
)
"""A call of a tool that a model writes as text."""

_PAGE = re.compile(r"\s*<(?:p|div|span|ul|ol|h\d|html|body)\b[^<>]*>", re.IGNORECASE)


class Utterance(Frozen):
    """What one party says: `text`, and `documents` that came with it."""

    speaker: Speaker
    text: str
    documents: tuple[str, ...] = ()


def utterances(messages: Any) -> list[Utterance]:
    """Return the messages of a conversation, in whatever of the usual forms: OpenAI, Anthropic,
    Gemini, ShareGPT, OpenTelemetry, LangChain, ChatGPT's export, pairs of a question and its
    answer, or one text with marks of who speaks. What is none is left out.
    """
    if isinstance(messages, str):
        messages = read_json(messages)
        if isinstance(messages, str):
            if told := transcript(messages):
                return [one for said in told for one in _utterances(said._asdict())]
            return [Utterance(speaker="user", text=messages)] if messages.strip() else []
    if isinstance(messages, Mapping):
        if isinstance(tree := messages.get("mapping"), Mapping):
            return utterances(_branch(tree, messages.get("current_node")))
        inner = next((messages[n] for n in CONVERSATIONS if _is_listed(messages.get(n))), None)
        if inner is None:
            # The chat of a chat.
            held = (messages.get(n) for n in CONVERSATIONS)
            inner = next((one for one in held if isinstance(one, Mapping)), None)
        if inner is None and len(messages) > 1 and _are_objects(messages.values()):
            # Each turn under a name of its own.
            inner = list(messages.values())
        system = messages.get("system")
        if inner is not None:
            first = [Utterance(speaker="system", text=text_of_content(system))] if system else []
            return [*first, *utterances(inner)]
        messages = [messages]
    if not isinstance(messages, Iterable):
        return []
    if _are_pairs(messages):
        return [
            Utterance(speaker=speaker, text=text)
            for pair in messages
            for speaker, text in zip(("user", "assistant"), pair, strict=True)
            if text
        ]
    # A batch of one conversation.
    listed = [one for each in messages for one in (each if isinstance(each, list) else [each])]
    listed = named_apart(oldest_first(listed))
    return _with_answers([said for one in with_speakers(listed) for said in _utterances(one)])


_TIME = re.compile(r"time|date|created|sent|_at$|At$|^ts$", re.IGNORECASE)


def oldest_first(messages: list[Any]) -> list[Any]:
    """Return messages in their order, where a service lists the newest first: by a time that all of
    them tell.
    """
    objects = [one for one in messages if isinstance(one, Mapping)]
    if len(objects) < max(2, len(messages)):
        return messages
    for name in objects[0]:
        times: list[Any] = [one.get(name) for one in objects if _TIME.search(str(name))]
        if times and are_times(times):
            falls = all(one >= two for one, two in pairwise(times)) and times[0] != times[-1]
            return messages[::-1] if falls else messages
    return messages


def are_times(values: Iterable[Any]) -> bool:
    """Return whether all values are numbers, or texts that begin with a year."""
    values = list(values)
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)
    return numbers or all(isinstance(one, str) and one[:4].isdigit() for one in values)


def in_turn(texts: Any) -> list[Utterance]:
    """Return a list of bare texts, or of objects with one, as what a user and an assistant say in
    turn; [] for others.
    """
    held = texts if isinstance(texts, list) else []
    texts = [content_of(one) if isinstance(one, Mapping) else one for one in held]
    if not all(isinstance(one, str) for one in texts) or any(
        isinstance(one, Mapping) and (speaker_of(one) or party_named(one)) for one in held
    ):
        return []
    return [
        Utterance(speaker="assistant" if at % 2 else "user", text=one.strip())
        for at, one in enumerate(texts)
    ]


def _are_objects(values: Iterable[Any]) -> bool:
    return all(isinstance(one, Mapping) and len(one) > 1 for one in values)


def _with_answers(said: list[Utterance]) -> list[Utterance]:
    """Return what was said, with an assistant where a user and a system speak in turn: what data
    sets of dialogues call the party that answers.
    """
    speakers = [one.speaker for one in said]
    if "assistant" in speakers or "user" not in speakers:
        return said
    since = speakers.index("user")
    systems = [one.text for one in said if one.speaker == "system"]
    if since and len(set(systems)) < len(systems):
        # The same prompt, before each of several questions.
        return said
    turns = speakers[since:]
    if len(turns) < 2 or set(turns[::2]) != {"user"} or set(turns[1::2]) != {"system"}:
        return said
    answers = [
        one.model_copy(update={"speaker": "assistant"}) if one.speaker == "system" else one
        for one in said[since:]
    ]
    return [*said[:since], *answers]


def _are_pairs(messages: Any) -> bool:
    """Return whether a list holds pairs of a question and its answer."""
    pairs = bool(messages) and all(
        isinstance(one, list | tuple)
        and len(one) == 2
        and all(isinstance(text, str) or text is None for text in one)
        for one in messages
    )
    # Lines of a log, each with its time, are none.
    return pairs and not all(str(one[0]).isdigit() for one in messages)


def _branch(tree: Mapping[str, Any], last: Any) -> list[Any]:
    """Return the messages of a tree that lead to its last node: ChatGPT's export. What was written
    and then replaced lies on other branches.
    """
    if last not in tree:
        # The newest leaf.
        leaves = [name for name, one in tree.items() if not (one or {}).get("children")]
        last = leaves[-1] if leaves else None
    found: list[Any] = []
    while isinstance(node := tree.get(last), Mapping) and len(found) < len(tree):
        found.append(node.get("message"))
        last = node.get("parent")
    return [one for one in reversed(found) if one]


def text_of_content(content: Any) -> str:
    """Return the text of a message's content: a string, an object, or a list of parts; what is
    thought and what tools are asked is left out.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        # Parts of a message that were written as a text.
        parts = read_json(content) if _PARTS.match(content) else content
        return content if isinstance(parts, str) else text_of_content(parts) or content
    if isinstance(content, Mapping):
        kind = str(content.get("type") or content.get("content_type") or "text")
        if kind in (*_THOUGHTS, *_ASKS_TOOLS) or _is_thought(content):
            return ""
        if kind == "document" and isinstance(source := content.get("source"), Mapping):
            return str(source.get("data") or "") if source.get("type") == "text" else ""
        if any(name in content for name in ("toolUse", "functionCall", "function_call")) or (
            {"name", "arguments"} <= content.keys()
        ):
            return ""
        for name in (
            "text",
            "content",
            "page_content",
            "pageContent",
            "document.content",
            "value",
            "output",
            "result",
            "response",
            "message",
            "parts",
            "document",
            "extracted_content",
            "Text",
            *_RESULTS,
        ):
            if content.get(name) is not None:
                return text_of_content(content[name])
        inner = [one for one in content.values() if isinstance(one, Mapping | list)]
        told = [text for one in inner if (text := text_of_content(one))[:1] not in ("", "{")]
        if told and len(content) == 1:
            return _joined(told)
        unsaid = kind != "text" or any(name in content for name in ("file_name", "fileName", "url"))
        return "" if unsaid else json.dumps(content, ensure_ascii=False)
    if isinstance(content, Sequence):
        return _joined(filter(None, map(text_of_content, content)))
    return str(content)


_PARTS = re.compile(r"\s*(?:\[\s*\{\s*\"(?:text|type)|\{\s*\"text)\"\s*:")


def _joined(parts: Iterable[str]) -> str:
    """Return parts as one text, each on a line of its own unless one goes on with a sentence."""
    text = ""
    for part in parts:
        goes_on = text[-1:].isspace() or part[0].isspace() or part[0] in ".,;:!?)。，；：！？）"
        text += part if goes_on or not text else f"\n{part}"
    return text


def _utterances(one: Any) -> list[Utterance]:
    if isinstance(one, str):
        return [Utterance(speaker="user", text=one)] if one.strip() else []
    if not isinstance(one, Mapping):
        return []
    if isinstance(one.get("kwargs"), Mapping) and isinstance(one.get("id"), list) and one["id"]:
        # LangChain's own form, which names the class of a message.
        one = {"role": str(one["id"][-1]), **one["kwargs"]}
    if isinstance(versions := one.get("versions"), list) and versions:
        # What was written again and again.
        chosen = one.get("currentlySelected")
        if not isinstance(chosen, int) or chosen >= len(versions):
            chosen = -1
        return _utterances(versions[chosen])
    if str(one.get("type")) in _OFFERED or _is_thought(one):
        return []
    speaker = speaker_of(one)
    if isinstance(inner := one.get("message"), Mapping) and is_message(inner):
        # What came with a message may stand around it.
        return _utterances({**one, "message": None, **inner})
    if speaker is None and str(one.get("type")).endswith("_call"):
        # A search of the service itself holds what it found.
        return [Utterance(speaker="tool", text=text) for text in documents_in(one.get("results"))]
    if speaker is None and len(one) == 1 and is_message(inner := next(iter(one.values()))):
        return _utterances(inner)
    if speaker is None:
        return _history(one) or _pair(one)
    content = content_of(one)
    known = (one.get(name) for name in _DOCUMENTS if name != "citations")
    documents = tuple(text for held in known for text in documents_in(held))
    documents = documents or tuple(attached_texts(one))
    # What a tool gave may stand among the parts of a user's message.
    parts = content if isinstance(content, list) else []
    results = [part for part in parts if _is_result(part)]
    rest = [part for part in parts if not _is_result(part)] if results else content
    found = [Utterance(speaker="tool", text=_given_by(part)) for part in results]
    text = _without_tags(text_of_content(rest))
    if isinstance(rest, Mapping) and (text[:1] == "{" or _SAYS.isdisjoint(rest)):
        # What a program tells of itself.
        text = ""
    if speaker == "assistant":
        text = _reacted(_TOOL_CALLED.sub("", text).strip())
    elif told := _TOOL_SAID.fullmatch(text.strip()):
        return [Utterance(speaker="tool", text=told["text"].strip())]
    if text.strip() or documents or not found:
        found.append(Utterance(speaker=speaker, text=text, documents=documents))
    # Of several replies the first, which people ranked best; of branches the newest.
    replies, branches = one.get("replies"), one.get("children")
    if isinstance(replies, list) and replies:
        return [*found, *_utterances(replies[0])]
    return (
        [*found, *_utterances(branches[-1])] if isinstance(branches, list) and branches else found
    )


_ACTS = re.compile(
    r"(?:Thought:.*?)?\bAction:\s*(?P<name>.+?)\s*\n\s*Action[ _]Input:(?P<input>.*)",
    re.DOTALL,
)
_FINAL = re.compile(r"(?:\A|\n)\s*Final Answer:\s*(?P<text>.*)", re.DOTALL)
_TOOL_SAID = re.compile(
    r"<(?P<tag>tool_response|function_results?|tool_result|observation)>(?P<text>.*)</(?P=tag)>",
    re.DOTALL,
)


_SAYS = frozenset(
    {"text", "content", "contents", "parts", "value", "message", "output", "result", "response",
     "Text", "extracted_content", "kwargs", "data"}
)  # fmt: skip
"""Names of which an object with a text has one."""


def _given_by(part: Mapping[str, Any]) -> str:
    """Return the text of a tool's result, or of a document, among the parts of a message."""
    held = attached_texts(part) if isinstance(part.get("document"), Mapping) else []
    return "\n".join(held) or text_of_content(part)


def _reacted(text: str) -> str:
    """Return the answer in what an agent writes that reasons and acts in turn (ReAct); "" where it
    only acts.
    """
    if final := _FINAL.search(text):
        return final["text"].strip()
    acts = _ACTS.match(text)
    if acts is None:
        return text
    given = read_json(acts["input"].strip())
    said = given.get("final_answer", given.get("answer")) if isinstance(given, Mapping) else None
    return said if isinstance(said, str) else ""


def _is_thought(one: Mapping[str, Any]) -> bool:
    """Return whether a message, or a part of one, is thought and not said."""
    style = one.get("style")
    kinds = (one.get("type"), style.get("type") if isinstance(style, Mapping) else None)
    flags = (one.get(name) is True for name in ("thought", "isThought", "is_thought"))
    return any(flags) or any(str(kind) in _THOUGHTS for kind in kinds)


_THOUGHTS = ("reasoning", "thinking", "thoughts", "reasoning_recap")


def _without_tags(text: str) -> str:
    """Return the text of a message that is written as a piece of a page: "<p>...</p>"."""
    if not _PAGE.match(text):
        return text
    plain = re.sub(r"<[^<>]*>", "", re.sub(r"<br\s*/?>|</(?:p|div|li|h\d)>", "\n", text))
    return html.unescape(plain).strip()


def _is_listed(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, str) and value.lstrip()[:1] == "[")


def tells_by_parts(one: Any) -> bool:
    """Return whether `one` is a request or a response whose parts each tell who speaks."""
    return any(
        _kind_of_part(part) in _PARTS_OF_HISTORY or "part_kind" in part for part in _parts(one)
    )


def _parts(one: Any) -> list[Mapping[str, Any]]:
    held = [one.get(name) for name in ("parts", "fragments")] if isinstance(one, Mapping) else []
    return [part for of in held if isinstance(of, list) for part in of if isinstance(part, Mapping)]


def _kind_of_part(part: Mapping[str, Any]) -> str:
    """Return the kind by which a part tells who speaks; types of contents do not."""
    kind = str(part.get("part_kind") or part.get("type") or "")
    return kind if "part_kind" in part or kind.isupper() else ""


def _history(one: Mapping[str, Any]) -> list[Utterance]:
    """Return what the parts of a request or a response say that each tell who speaks."""
    return [
        said
        for part in _parts(one)
        if (role := _PARTS_OF_HISTORY.get(_kind_of_part(part))) is not None
        for said in _utterances({"role": role, "content": part.get("content")})
    ]


def _pair(one: Mapping[str, Any]) -> list[Utterance]:
    """Return what a question and its answer say that are one object."""
    texts = _texts_by_name(one)
    for asked, said in _PAIRS:
        if asked in texts and said in texts:
            return _both(texts[asked], texts[said], one)
    return said_by_both(one)


def said_by_both(one: Mapping[str, Any]) -> list[Utterance]:
    """Return what a user and an assistant say in one object, each under the name of the party; []
    where it is not both of them.
    """
    texts = _texts_by_name(one)
    told = {SPEAKERS.get(_WHAT_IS_SAID.sub("", name)): text for name, text in texts.items()}
    # What a system says beside a user alone is its answer.
    said = told.get("assistant", told.get("system", ""))
    return _both(bare_text(told["user"]), bare_text(said), one) if "user" in told and said else []


def _texts_by_name(one: Mapping[str, Any]) -> dict[str, str]:
    held = {str(name).casefold(): _only(value) for name, value in one.items()}
    return {name: text for name, text in held.items() if isinstance(text, str) and text.strip()}


def _both(asked: str, said: str, one: Mapping[str, Any]) -> list[Utterance]:
    known = (one.get(name) for name in _DOCUMENTS)
    documents = tuple(text for held in known for text in documents_in(held))
    documents = documents or tuple(attached_texts(one))
    return [
        Utterance(speaker="user", text=asked, documents=documents),
        Utterance(speaker="assistant", text=said),
    ]


_WHAT_IS_SAID = re.compile(
    r"[\s_-]*(?:message|msg|text|utterance|turn|said|says|utt)$|(?:说|消息|话)$"
)
"""The end of a name of what a party says: "userMessage", "customer_text", "sys_utt"."""


def _only(value: Any) -> Any:
    """Return the one thing in a list, also in the list in it; anything else as it is."""
    return _only(value[0]) if isinstance(value, list) and len(value) == 1 else value


def _is_result(part: Any) -> bool:
    """Return whether a part of a message is what a tool gave, or a document."""
    if not isinstance(part, Mapping):
        return False
    kind = str(part.get("type") or "")
    return (
        kind in (*_PARTS_OF_TOOLS, "document", "search_result")
        or any(name in part for name in (*_RESULTS, "call_id"))
        or isinstance(part.get("document"), Mapping)
        or (kind.startswith("tool-") and part.get("output") is not None)
    )


def documents_in(value: Any) -> list[str]:
    """Return the texts of documents: a list of texts or of objects, one of these, or JSON of it."""
    value = read_json(value)
    if isinstance(value, (str, Mapping)):
        value = [value]
    if not isinstance(value, Sequence):
        return []
    texts = (text_of_content(one) for one in value)
    # A single word says where something comes from: "wikipedia", "api".
    return list(filter(has_words, texts))
