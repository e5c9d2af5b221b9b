"""A conversation as texts to check: each answer of the assistant, with what it answers and what it
had to go by.

The question of a turn is what the user said last; where that does not stand alone ("And when was
she born?"), what was said before it stands in front of it. Its sources are what tools and documents
said until then. Earlier answers of the assistant are no sources: they are checked themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from pipelines.base import Frozen, Language
from pipelines.engine.checking import TextToCheck, problem_of
from pipelines.engine.transcripts import transcript
from pipelines.run.events import MAX_SOURCES
from pipelines.text import has_han, split_sentences, without_thinking

Speaker = Literal["system", "user", "assistant", "tool"]

_SPEAKERS: Mapping[str, Speaker] = {
    "system": "system",
    "systemmessage": "system",
    "developer": "system",
    "user": "user",
    "usermessage": "user",
    "customer": "user",
    "incoming": "user",
    "usuario": "user",
    "utilisateur": "user",
    "nutzer": "user",
    "用户": "user",
    "用戶": "user",
    "提问者": "user",
    "humanmessage": "user",
    "human": "user",
    "prompter": "user",
    "assistant": "assistant",
    "apimessage": "assistant",
    "agent": "assistant",
    "outgoing": "assistant",
    "asistente": "assistant",
    "assistent": "assistant",
    "助手": "assistant",
    "助理": "assistant",
    "模型": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "tool": "tool",
    "工具": "tool",
    "toolmessage": "tool",
    "functionmessage": "tool",
    "function_call_output": "tool",
    "function": "tool",
    "observation": "tool",
    "function_response": "tool",
    "document": "tool",
    "context": "tool",
}
"""Names of who speaks, as servers, data sets and exports write them."""

_ROLE = (
    "role",
    "from",
    "speaker",
    "author",
    "type",
    "sender",
    "direction",
    "event",
    "角色",
    "发言人",
)
_CONTENT = (
    "content", "parts", "value", "text", "message", "body", "output", "payload", "items", "内容",
    "mes",
)  # fmt: skip
CONVERSATIONS = (
    "messages", "conversations", "conversation", "contents", "chat_messages", "chat_history",
    "dialog", "dialogue", "turns", "chat", "activities", "history", "对话", "消息",
)  # fmt: skip
"""Names of a list of messages."""

_BY_USER = ("isCreatedByUser", "is_user", "isUser", "from_user", "fromUser")
"""Flags that say who speaks."""

_PAIRS = (
    ("question", "answer"), ("query", "response"), ("prompt", "response"),
    ("instruction", "output"), ("input", "output"), ("prompt", "completion"),
    ("q", "a"), ("问题", "回答"), ("问", "答"),
)  # fmt: skip
_PARTS_OF_HISTORY = {
    "system-prompt": "system", "user-prompt": "user", "tool-return": "tool", "text": "assistant",
}  # fmt: skip
"""Kinds of parts by which Pydantic AI tells who speaks."""

_RESULTS = ("functionResponse", "function_response", "toolResult", "tool_result")
"""What holds the result of a tool, in parts that say no type."""
_DOCUMENTS = (
    "documents", "sources", "context", "contexts", "retrieved_contexts", "attachments",
    "sourceDocuments", "source_nodes", "citations",
)  # fmt: skip
_PARTS_OF_TOOLS = ("tool_call_response", "tool_result", "tool-result", "function_call_output")

_ASKS_TOOLS = (
    "tool_call", "tool_use", "function_call", "server_tool_use", "tool-call", "code",
)  # fmt: skip

_MOST_BEFORE = 600
"""Characters of what was said before, in front of a question that does not stand alone."""

_MOST_OF_ANSWER = 200
_LONG = 300
"""Characters from which on what a user says holds a text beside the question."""

_POINTS_BACK = re.compile(
    r"\b(?:he|she|it|its|they|him|her|his|their|them|this|that|these|those|there|then|one|ones"
    r"|former|latter|same|else)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"^\W*(?:and|but|so|or|what about|how about|why|since when)\b", re.IGNORECASE)
_POINTS_BACK_ZH = re.compile(r"[他她它]们?|这|那|其|该|此")
_FEW_WORDS, _FEW_CHARACTERS = 4, 6


class Utterance(Frozen):
    """What one party says: `text`, and `documents` that came with it."""

    speaker: Speaker
    text: str
    documents: tuple[str, ...] = ()


class ConversationTurn(Frozen):
    """An answer of the assistant as a text to check; `number` counts its answers from 1."""

    number: int = Field(ge=1)
    given: TextToCheck


def turns_of(
    messages: Sequence[Utterance],
    *,
    sources: tuple[str, ...] = (),
    language: Language | None = None,
) -> list[ConversationTurn]:
    """Return every answer of a conversation as a text to check, with its context.

    `sources` hold for every turn. Answers without a word, such as calls of tools, are left out.
    """
    turns: list[ConversationTurn] = []
    said = list(sources)
    question = asked = ""
    last = ""
    for one in messages:
        said += one.documents
        if one.speaker == "tool":
            said += [one.text] if one.text.strip() else []
        elif one.speaker == "user":
            asked, pasted = _asked(one.text)
            said += [pasted] if pasted else []
            question = _with_context(asked, question, last)
        elif one.speaker == "assistant" and one.text.strip():
            text = without_thinking(one.text).strip()
            given = TextToCheck(
                text=text, question=question, sources=_newest(said, sources), language=language
            )
            wrong = problem_of(given)
            if wrong is not None and wrong.name in ("repeats", "long_question"):
                # What it says was said before it.
                given = given.model_copy(update={"question": asked[-_MOST_BEFORE:]})
            turns.append(ConversationTurn(number=len(turns) + 1, given=given))
            last = text
    return turns


def _newest(said: Sequence[str], kept: Sequence[str]) -> tuple[str, ...]:
    """Return the sources of a turn; where they are too long, the oldest of those found give way."""
    found = list(dict.fromkeys(one.strip() for one in said if one.strip()))
    room = MAX_SOURCES - sum(len(one) + 2 for one in kept)
    chosen: list[str] = []
    for one in reversed([text for text in found if text not in kept]):
        if len(one) + 2 > room:
            break
        room -= len(one) + 2
        chosen.append(one)
    return (*kept, *reversed(chosen))


def _asked(text: str) -> tuple[str, str]:
    """Return what is asked, and the text that came with it: of a long message that holds a text,
    the paragraph with the last question, else the shorter one of the first and the last.
    """
    text = text.strip()
    parts = [part.strip() for part in re.split(r"\n\s*\n|\n(?=\S)", text) if part.strip()]
    if len(text) <= _LONG or len(parts) < 2:
        return text, ""
    asking = [part for part in parts if part.endswith(("?", "？"))]
    chosen = asking[-1] if asking else min(parts[0], parts[-1], key=len)
    if len(chosen) > _LONG:
        return text, ""
    return chosen, "\n".join(part for part in parts if part is not chosen)


def _with_context(asked: str, before: str, answered: str) -> str:
    """Return a question that stands alone: with earlier turns if its words point back to them."""
    if not before or not _depends(asked):
        return asked
    first = next((span.text for span in split_sentences(answered)), "")[:_MOST_OF_ANSWER]
    context = " ".join(filter(None, (before, first)))
    if len(context) > _MOST_BEFORE:
        # Its end: the beginning of a long conversation is about something else.
        context = context[-_MOST_BEFORE:].partition(" ")[2] or context[-_MOST_BEFORE:]
    return f"{context} {asked}".strip()


def _depends(asked: str) -> bool:
    if has_han(asked):
        return len(asked.strip("？?。 ")) <= _FEW_CHARACTERS or points_back(asked)
    few = len(asked.split()) <= _FEW_WORDS
    named = any(word[:1].isupper() for word in asked.split()[1:])
    return bool(_GOES_ON.search(asked)) or points_back(asked) or (few and not named)


def points_back(text: str) -> bool:
    """Return whether a word of `text` means something that was said before it, such as "she"."""
    return bool((_POINTS_BACK_ZH if has_han(text) else _POINTS_BACK).search(text))


# --- Reading messages -----------------------------------------------------------------------------


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
    return [said for one in listed for said in _utterances(one)]


def _are_pairs(messages: Any) -> bool:
    """Return whether a list holds pairs of a question and its answer."""
    return bool(messages) and all(
        isinstance(one, list | tuple)
        and len(one) == 2
        and all(isinstance(text, str) or text is None for text in one)
        for one in messages
    )


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


def is_message(one: Any) -> bool:
    """Return whether `one` is an object that says who speaks and what."""
    return isinstance(one, Mapping) and _speaker(one) is not None and _content(one) is not None


def read_json(text: str) -> Any:
    """Return the JSON object or list in `text`; the text itself where it holds none."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def text_of_content(content: Any) -> str:
    """Return the text of a message's content: a string, an object, or a list of parts; what is
    thought and what tools are asked is left out.
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        kind = str(content.get("type") or content.get("content_type") or "text")
        thought = kind in ("reasoning", "thinking", "thoughts", "reasoning_recap")
        if thought or content.get("thought") is True or kind in _ASKS_TOOLS:
            return ""
        if kind == "document" and isinstance(source := content.get("source"), Mapping):
            return str(source.get("data") or "") if source.get("type") == "text" else ""
        if any(name in content for name in ("toolUse", "functionCall", "function_call")):
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
            "parts",
            "document",
            "extracted_content",
            "Text",
            *_RESULTS,
        ):
            if content.get(name) is not None:
                return text_of_content(content[name])
        unsaid = kind != "text" or any(name in content for name in ("file_name", "fileName", "url"))
        return "" if unsaid else json.dumps(content, ensure_ascii=False)
    if isinstance(content, Sequence):
        return "\n".join(filter(None, map(text_of_content, content)))
    return str(content)


def _utterances(one: Any) -> list[Utterance]:
    if isinstance(one, str):
        return [Utterance(speaker="user", text=one)] if one.strip() else []
    if not isinstance(one, Mapping):
        return []
    if isinstance(one.get("kwargs"), Mapping) and isinstance(one.get("id"), list) and one["id"]:
        # LangChain's own form, which names the class of a message.
        one = {"role": str(one["id"][-1]), **one["kwargs"]}
    speaker = _speaker(one)
    if speaker is None and str(one.get("type")).endswith("_call"):
        # A search of the service itself holds what it found.
        return [Utterance(speaker="tool", text=text) for text in documents_in(one.get("results"))]
    if speaker is None:
        return _history(one) or _pair(one)
    content = _content(one)
    documents = tuple(
        text for name in _DOCUMENTS if name != "citations" for text in documents_in(one.get(name))
    )
    # What a tool gave may stand among the parts of a user's message.
    parts = content if isinstance(content, list) else []
    results = [part for part in parts if _is_result(part)]
    rest = [part for part in parts if not _is_result(part)] if results else content
    found = [Utterance(speaker="tool", text=text_of_content(part)) for part in results]
    text = text_of_content(rest)
    if text.strip() or documents or not found:
        found.append(Utterance(speaker=speaker, text=text, documents=documents))
    return found


def _is_listed(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, str) and value.lstrip()[:1] == "[")


def tells_by_parts(one: Any) -> bool:
    """Return whether `one` is a request or a response whose parts each tell who speaks."""
    parts = one.get("parts") if isinstance(one, Mapping) else None
    return isinstance(parts, list) and any(
        isinstance(part, Mapping) and "part_kind" in part for part in parts
    )


def _history(one: Mapping[str, Any]) -> list[Utterance]:
    """Return what the parts of a request or a response say that each tell who speaks."""
    return [
        said
        for part in (one["parts"] if tells_by_parts(one) else ())
        if isinstance(part, Mapping)
        and (role := _PARTS_OF_HISTORY.get(str(part.get("part_kind")))) is not None
        for said in _utterances({"role": role, "content": part.get("content")})
    ]


def _pair(one: Mapping[str, Any]) -> list[Utterance]:
    """Return what a question and its answer say that are one object, by the names of who speaks."""
    one = {str(name).casefold(): value for name, value in one.items()}
    for asked, said in _PAIRS:
        if all(isinstance(one.get(name), str) and one[name].strip() for name in (asked, said)):
            documents = tuple(text for name in _DOCUMENTS for text in documents_in(one.get(name)))
            return [
                Utterance(speaker="user", text=one[asked], documents=documents),
                Utterance(speaker="assistant", text=one[said]),
            ]
    found: list[Utterance] = []
    for name, text in one.items():
        speaker = _SPEAKERS.get(str(name).casefold())
        if speaker in ("user", "assistant") and isinstance(text, str) and text.strip():
            found.append(Utterance(speaker=speaker, text=text))
    return found if {one.speaker for one in found} == {"user", "assistant"} else []


def _is_result(part: Any) -> bool:
    """Return whether a part of a message is what a tool gave, or a document."""
    if not isinstance(part, Mapping):
        return False
    kind = str(part.get("type") or "")
    return (
        kind in (*_PARTS_OF_TOOLS, "document", "search_result")
        or any(name in part for name in _RESULTS)
        or (kind.startswith("tool-") and part.get("output") is not None)
    )


def _speaker(one: Mapping[str, Any]) -> Speaker | None:
    for name in _BY_USER:
        if isinstance(one.get(name), bool):
            return "user" if one[name] else "assistant"
    for name in _ROLE:
        said = one.get(name, one.get(name.capitalize()))
        said = (said.get("role") or said.get("type")) if isinstance(said, Mapping) else said
        if isinstance(said, str) and (known := _speaker_called(said)):
            return known
    return None


def _speaker_called(name: str) -> Speaker | None:
    """Return who is called so, also in the name of a message ("user_message")."""
    name = name.casefold().strip()
    return _SPEAKERS.get(name) or _SPEAKERS.get(re.sub(r"[\s_-]+(?:message|msg|turn)$", "", name))


def _content(one: Mapping[str, Any]) -> Any:
    named = (name for both in _CONTENT for name in (both, both.capitalize()))
    found = next((one[name] for name in named if one.get(name) is not None), None)
    if found is None and isinstance(one.get("data"), Mapping):
        return _content(one["data"])
    return found


def documents_in(value: Any) -> list[str]:
    """Return the texts of documents: a list of texts or of objects, one of these, or JSON of it."""
    if isinstance(value, str):
        value = read_json(value)
    if isinstance(value, (str, Mapping)):
        value = [value]
    if not isinstance(value, Sequence):
        return []
    return [text for one in value if (text := text_of_content(one)).strip()]
