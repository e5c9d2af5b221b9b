"""Error texts in the place of an answer, as gateways and services send them with status 200.

A reply is an error text only as a whole: an answer that talks about errors is an answer.
"""

from __future__ import annotations

import json
import re
from typing import Any

_LONGEST = 600
"""Characters of an error text that is neither a page nor JSON; they are lines for logs (ours)."""

_PAGE = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html|html|head|title|error)\b", re.I)
_ABOUT = re.compile(
    r"code|status|message|msg|details?|type|param|object|path|success|reason|timestamp|\w*id"
    r"|statuscode|retryafter"
)
"""Keys of a JSON error beside "error", in lower case without other signs than letters."""

_STATUS = (
    r"bad gateway|gateway time-?\s?out|gateway error|service (?:is )?(?:temporarily |currently )?"
    r"unavailable|internal (?:server )?error|server error|too many requests|request time-?\s?out"
)
_WITH_NUMBER = (
    r"bad request|unauthori[sz]ed|forbidden|not found|payment required|method not allowed|conflict"
    r"|request entity too large|payload too large|unprocessable (?:entity|content)|error"
)
_FAILED = (
    rf"{_STATUS}"
    r"|(?:the )?(?:upstream|backend|origin)(?: \w+){0,2} (?:time-?\s?out|timed out|error"
    r"|unavailable)"
    r"|upstream connect error(?: or disconnect/reset before headers)?|no healthy upstream"
    r"|upstream prematurely closed"
    r"|(?:api |request |token )?rate[ -]?limit(?:ed|s)? (?:was |is |has been )?"
    r"(?:exceeded|reached|hit|error)|(?:you are (?:being )?)?rate[ -]?limited"
    r"|(?:you (?:have )?exceeded your (?:current )?)?quota(?: (?:was |is |has been )?exceeded)?"
    r"|(?:the |your )?(?:request|connection|read|write|operation|call|response|model|server|proxy"
    r"|network|stream|socket)(?: (?:is|was|has|been|currently|pool|to|error)){0,3}"
    r" (?:timed out|time-?\s?out|aborted|overloaded|error|reset by peer|closed unexpectedly)"
    r"|(?:the |your )?(?:request|connection|server|network connection)"
    r"(?: (?:is|was|has|been|too)){0,3} (?:refused|reset|closed|failed|busy|interrupted|cancell?ed)"
    r"|time-?\s?out (?:error|exceeded)|timed out|(?:context )?deadline exceeded"
    r"|(?:the )?server had an error|something went wrong"
    r"|an? (?:unexpected |internal |unknown |network )?error (?:has )?occurred"
    r"|(?:invalid|incorrect|missing|expired) (?:api[ -]?key|token|credentials)"
    r"|(?:the )?(?:model|engine|deployment)(?: [\w.:/-]+)? (?:is )?(?:currently )?(?:overloaded"
    r"|not found|loading|unavailable|does not exist)"
    r"|failed to (?:fetch|connect|generate|get)(?: \w+){0,4}|fetch failed|could not connect"
    r"|E(?:CONNREFUSED|CONNRESET|TIMEDOUT|PIPE|NOTFOUND|AI_AGAIN)|CUDA (?:error|out of memory)"
    r"|out of memory"
)
_FAILED_ZH = (
    r"(?:网关|代理|上游|服务器?|后端|系统|网络|接口|模型|请求|连接|响应|调用)[^，。,.!！?？]{0,8}?"
    r"(?:超时|错误|异常|不可用|繁忙|失败|中断|被拒绝|过载|过于频繁|超限)"
    r"|(?:访问|调用|请求)(?:频率|次数)(?:过高|超限|受限)|(?:请求)?过于频繁|触发限流|余额不足|未授权"
    r"|出错了|发生(?:了)?(?:未知)?错误"
)
_LABEL = (
    r"(?:(?:api|http|https|server|service|proxy|gateway|network|internal|upstream|fatal|runtime"
    r"|request|value|connection|timeout|unhandled|nginx|cloudflare|openai|[\w.]{0,40})[ ._-]?)?"
    r"(?:error|exception|failure|错误|异常|报错)(?: code)?"
)
_NUMBER = r"(?:(?:http|https|status|code|error)[ /:]*(?:1\.[01] |2 )?){0,3}\(?[45]\d\d\)?"
_TAIL = (
    r"(?:\s*[.:;,!(\[\-–。，；：！（].*|\s+(?:please|try again|while (?:processing|connecting)"
    r"|after \d|for (?:requests?|url|model|this|your)|with other requests|or disconnect)\b.*)?"
)
_ERROR_TEXT = re.compile(
    rf"\W*(?:(?:{_LABEL})\W*)?(?:{_NUMBER}\W*(?:(?:{_LABEL})\W*)?(?:{_WITH_NUMBER}|{_FAILED})"
    rf"|{_FAILED})\b{_TAIL}\s*"
    rf"|\W*(?:{_LABEL})?\W*(?:{_NUMBER})?\W*(?:{_FAILED_ZH}){_TAIL}\s*"
    rf"|\W*(?:http|status|error)[ /:]*(?:code[ :]*)?(?:[45]\d\d|1\d\d\d)\W*"
    # A label that opens a line for a log: "Error: ...", "ValueError: ...", "[ERROR] ...".
    r"|\W*(?:\w*Error|\w+Exception|Traceback(?: \(most recent call last\))?)\s*[:\]]\s*\S.*",
    re.I | re.S,
)
_ASKS = re.compile(
    r"\bstatus codes?\b|\berror (?:codes?|messages?|texts?)\b|\bhttp (?:codes?|status|errors?)\b"
    r"|\bgateway\b|\btime-?outs?\b|\brate[ -]?limit|\bupstream\b|\bexceptions?\b|\bproxy\b"
    r"|\bout of memory\b|状态码|错误(?:码|信息|代码)|报错|网关|超时|限流|异常",
    re.I,
)


def is_error_text(text: str, asked: str = "") -> bool:
    """Return whether all of `text` is the text of an error of a service, and no answer.

    `asked` is what it replies to: where that is about errors of this kind, or names the same
    number, the text answers it.
    """
    text = text.strip()
    if not text or _ASKS.search(asked):
        return False
    if _PAGE.match(text):
        return "html" not in asked.casefold() and "xml" not in asked.casefold()
    if text[0] == "{":
        return _is_error_object(text)
    if len(text) > _LONGEST or not _ERROR_TEXT.fullmatch(text):
        return False
    return not any(number in asked for number in re.findall(r"\b[45]\d\d\b", text))


def _is_error_object(text: str) -> bool:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict):
        return False
    keys = {re.sub(r"[^a-z]", "", str(key).casefold()): key for key in value}
    error = keys.pop("error", None) or keys.pop("errors", None)
    if error is not None:
        return bool(value[error]) and all(map(_ABOUT.fullmatch, keys))
    said = value.get(keys.get("detail") or keys.get("message") or "")
    if not isinstance(said, str) or not all(map(_ABOUT.fullmatch, keys)):
        return False
    return _ERROR_TEXT.fullmatch(said) is not None
