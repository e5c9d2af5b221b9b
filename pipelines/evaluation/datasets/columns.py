"""Names of columns: which part of an item each usually holds, in four languages."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

from pipelines.text.languages import simplified

LabelIs = Literal["", "hallucinated", "supported"]
"""What 1, true and yes say of a text; "" where nobody has said it."""

_GIVEN = """groundtruth groundtruths gold goldanswer goldanswers golden goldenanswer goldenanswers
    reference references referenceanswer referenceanswers target targets bestanswer correctanswer
    correctanswers ideal idealanswer rightanswer rightanswers expectedoutput expectedanswer
    expectedanswers expectedresponse expected possibleanswers acceptedanswers goldtruth gt answergt
    generationgt gtanswer gtanswers
    参考答案 正确答案 标准答案 参考回答
    musterantwort musterlosung referenz referenzantwort richtigeantwort korrekteantwort
    erwarteteantwort erwarteteausgabe
    reponsecorrecte bonnereponse reponseattendue reponsereference reponsedereference
    veriteterrain"""
"""Answers that somebody knows to be right."""

_PLAIN = """answer answers ans answertext shortanswer finaldecision 答案
    antwort antworten losung reponse reponses"""
"""Answers of which only the other columns tell whose they are."""

_USUAL: dict[str, str] = {
    "id": """id qid uid uuid questionid itemid exampleid sampleid recordid 编号 序号 题号
        kennung identifiant""",
    "question": """question query prompt input ask instruction questiontext userquery userinput
        userprompt userquestion usermessage maininput
        problem problemtext querytext questionbody ambiguousquestion
        问题 提问 题目 问 用户问题
        frage fragen fragestellung anfrage eingabe requete questions demande""",
    "language": "language lang locale 语言 语种 sprache langue",
    "answers": f"""{_GIVEN} {_PLAIN} aliases alias altans alternativeanswers answeraliases
        answeralias shortanswers 别名""",
    "wrong_answers": """wronganswer wronganswers incorrectanswer incorrectanswers
        hallucinatedanswer 错误答案 错误回答 falscheantwort falscheantworten
        mauvaisereponse mauvaisesreponses reponsefausse reponseincorrecte""",
    "lists": "answerlist answerslist entities lists 答案列表 实体列表",
    "passages": """passage passages context contexts ctxs evidence evidences knowledge doc docs
        document documents source sources facts premise grounding retrievedcontext
        retrievedcontexts retrievalcontext retrievedpassages retrieveddocuments retrieveddocs
        referencecontexts sourcetext sourcedocument goldevidence paragraph paragraphs contexttext
        searchresults retrievalresult supportingdocuments positive sourcedocuments sourcenodes
        retrievednodes retrieverresources paragraphlist wikipassage
        证据 段落 上下文 资料 文档 知识 来源 参考资料 原文 检索结果 检索内容
        kontext quelle quellen dokument dokumente beleg belege textstelle
        contexte contextes preuve preuves extrait extraits""",
    "text": """text response output generation generated generatedanswer generatedtext modelanswer
        modeloutput modelresponse mainoutput llmanswer llmoutput llmresponse actualoutput prediction
        predictedanswer predictions pred preds claim statement summary hypothesis hyp completion
        fulfillmenttext reply replies
        文本 回答 模型回答 模型答案 模型输出 回复 输出 生成文本 陈述 声明 摘要 生成内容
        ausgabe modellantwort behauptung aussage zusammenfassung texte sortie affirmation
        reponsemodele reponsedumodele""",
    "hallucinated": "label labels goldlabel verdict 标签 标注 判定 bewertung urteil etiquette",
    "sentences": "sentences labelledsentences labeledsentences sentencelabels 句子 句子标注",
    "spans": """spans labelledspans labeledspans hallucinationspans hallucinatedspans
        hardlabels 片段 标注片段 幻觉片段""",
    "samples": "samples sample sampledanswers textsamples sampledresponses 采样 样本",
    "group": "group documentid sourceid article topic 组 分组 文章 主题 thema gruppe sujet groupe",
    "tags": "tags tag category type split class 标签类别 类别 分类 类型 kategorie categorie",
}

_SAYING: dict[LabelIs, str] = {
    "hallucinated": """hallucinated hallucination hallucinations ishallucination ishallucinated
        hashallucination hallucinationlabel unsupported isunsupported unfaithful nonfactual
        inconsistent incorrect wrong iswrong 幻觉 是否幻觉 是否有幻觉 有无幻觉 是否存在幻觉 是否错误
        halluziniert halluzination hallucine""",
    "supported": """supported issupported support faithful isfaithful faithfulness factual isfactual
        factuality consistent isconsistent consistency correct iscorrect correctness accurate
        isaccurate adherence adherencescore entailed entailment isgrounded grounded attributable
        isright
        正确 是否正确 准确 是否准确 属实 是否属实 真实 是否真实 是否符合事实
        事实正确 忠实 是否忠实 一致 是否一致 是否支持 支持
        belegt korrekt richtig fidele correcte exacte""",
}
"""Columns of labels whose name says what yes means."""


def _bare(name: str) -> str:
    """Return a name without case, accents, and all that separates its words, in simplified
    characters.
    """
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    letters = "".join(one for one in simplified(plain) if not unicodedata.combining(one))
    return re.sub(r"[\W_]+", "", letters).casefold()


_PART_OF = {name: part for part, names in _USUAL.items() for name in names.split()}
_SAID_BY: dict[str, LabelIs] = {
    name: said for said, names in _SAYING.items() for name in names.split()
}
_PART_OF |= dict.fromkeys(_SAID_BY, "hallucinated")
_REFERENCES = frozenset(_GIVEN.split())
_UNDECIDED = frozenset(_PLAIN.split())

# Names that are put together, each with the plain name that means the same: "retrieved_chunks",
# "golden response", "contains_hallucination", "用户提问".
_COMPOSED = tuple(
    (re.compile(pattern), plain)
    for plain, pattern in {
        "question": r"(?:user|model|input|origin(?:al)?|test|human)?(?:question|query|prompt|input"
        r"|request|utterance|transcript)(?:text|content|string|stem)?"
        "|(?:用户|客户|原始|测试)?的?(?:问题|提问|输入|问句|查询|题目|题干|请求)(?:内容|文本)?",
        "reference": r"(?:reference|golden|gold|correct|right|expected|ideal|target|true|accepted"
        r"|acceptable|standard|groundtruth|oracle|canonical)(?:answer|response|output|completion"
        r"|reply|solution)s?|(?:参考|标准|正确|期望|预期|真实)的?(?:答案|回答|回复|输出)",
        "wronganswers": r"(?:distractor|(?:incorrect|wrong|false)(?:option|choice))s?",
        "spans": r"(?:unsupported|hallucinated|error|incorrect|inconsistent|wrong)"
        r"(?:span|segment|phrase|part)s?",
        "answers": "answers?(?:spans|texts|aliases)",
        "passage": r"(?:retrieved|retrieval|source|supporting|relevant|evidence|context|grounding"
        r"|background|article|document|external|cited)(?:context|passage|document|doc|text|evidence"
        r"|chunk|knowledge|paragraph|snippet|information|content|list|article)s?"
        r"|(?:reference|golden|gold|positive)(?:context|passage|document|doc|evidence|chunk|knowledge"
        r"|paragraph)s?|(?:参考|检索|相关|背景|支持|引用|外部|来源)的?(?:资料|文档|段落|上下文|文章|知识"
        "|证据|信息|文本|内容|材料)",
        "text": r"(?:generated|predicted|actual|candidate|claim|statement|student|rag)(?:answer"
        r"|response|output|summary|completion|text)s?|model(?:prediction|summary|claim)s?"
        "|(?:待检测|待评估|待核查|待验证)的?(?:文本|回答|内容|陈述)",
        "label": r"(?:human|final|majority|consensus|expert|annotator|veracity|evidence|response"
        r"|answer|attribution|claim|nli|verification)label"
        "|(?:人工|专家|最终|事实)?(?:标注|标签|判定|评判)(?:结果)?",
        "hallucinated": r"(?:is|has|contains?|any)a?hallucinat(?:ions?|ed)(?:flag|label)?"
        r"|hallucinat(?:ion|ed)(?:flag|present|detected|found)"
        "|(?:is|has|contains?)(?:an?)?(?:factual)?errors?"
        "|(?:是否|有无)(?:存在|含有?|包含|有)?(?:事实性?|内容)?(?:幻觉|错误|捏造|矛盾)(?:内容|信息)?",
        "supported": "是否(?:与[^是]{1,8})?(?:一致|有依据|有据|可靠|被支持|得到支持)",
    }.items()
)
_PLURAL = frozenset({"passages", "answers"})


def _known(name: str) -> str:
    """Return a name as the tables above have it, also with a number at its end, and for one that is
    put together the one that means the same; "" for others.
    """
    bare = _bare(name)
    for one in _spellings(bare):
        if one in _PART_OF:
            return one
        for other in (f"{one}s", one.removesuffix("s")):
            if _PART_OF.get(other) in _PLURAL:
                return other
    _, unnumbered = _spellings(bare)
    return next((plain for pattern, plain in _COMPOSED if pattern.fullmatch(unnumbered)), "")


def is_usual(name: str) -> bool:
    """Return whether a name is a usual one by itself, and not put together."""
    return any(one in _PART_OF for one in _spellings(_bare(name)))


def _spellings(bare: str) -> tuple[str, str]:
    """Return a name as it is, and without a number at its end."""
    return bare, re.sub(r"\d+$", "", bare)


# What people or judges said stands under many names, and so do other things.
_JUDGES = re.compile(
    r".*(?:judge|judge?ment|grade|verdict|groundedness|decision|conclusion|annotation"
    r"|标注|结论|判断|判定|评判|评价|结果)"
)


def may_judge(name: str) -> bool:
    """Return whether a column of this name holds labels where words of labels stand in it."""
    return _JUDGES.fullmatch(_bare(name)) is not None


# Columns named after the model that wrote what is in them: "chatgpt_response", "Claude 3 output".
_MODEL_SAID = re.compile(
    r"(?:chatgpt|gpt|llama|claude|gemini|gemma|qwen|mistral|deepseek|chatglm|glm|kimi|ernie|falcon"
    r"|vicuna|model|llm|ai|assistant|bot|chatbot|system)[a-z0-9]{0,8}?s?"
    r"(?:response|output|answer|text|reply|completion|generation|回答|回复|输出|答案|生成)s?"
    r"|(?:大?模型|大语言模型|ai|助手|机器人|系统)的?(?:回答|回复|输出|答案|生成|生成内容)"
)


def part_of(name: str) -> str:
    """Return the part of an item that a column of this name usually holds; "" for any other name.

    Names are English, Chinese, German and French. Case, accents, spaces, "_" and "-" do not count,
    nor does a number at the end ("Answer 1", "答案2").
    """
    part = _PART_OF.get(_known(name), "")
    return part or ("text" if _MODEL_SAID.fullmatch(_bare(name)) else _part_at_the_end(name))


_AROUND = re.compile(
    r"(?:.*[./])?(?!meta)\w*(?:inputs?|outputs?|record|row|example|sample|item|request|responses?|body"
    r"|data|log|result|payload|fields?|llm|gen_?ai|ai)",
    re.IGNORECASE,
)
_OF_A_MODEL = re.compile(r"response|result|prediction", re.IGNORECASE)
_HOLDER = re.compile(r"text|contents?|value|data|body|string|\d+", re.IGNORECASE)
"""Names of what holds something, which the name before it tells: "query.text"."""


def _part_at_the_end(name: str) -> str:
    """Return the part that the end of a way to a column names: "inputs.question", "query.text".

    What is called an answer in a response is what a model said; of an answer in an output nobody
    knows, for data for tests have the right ones there.
    """
    around, separator, last = re.sub("/", ".", name).rpartition(".")
    if not separator or not around:
        return ""
    if _HOLDER.fullmatch(last) and (part := part_of(around)):
        return part
    if not _AROUND.fullmatch(around):
        return ""
    part = part_of(last) or part_of(last.removesuffix("s"))
    if part == "answers" and is_any_answer(last):
        return "text" if _OF_A_MODEL.search(around) else ""
    return part


def said_by(name: str) -> LabelIs:
    """Return what yes means in a column of labels, where its name says that; else ""."""
    return _SAID_BY.get(_known(name), "")


# Names that say more: "factuality_of_gpt4", "was_incorrect", "not_supported", "无幻觉".
_SAYS_HALLUCINATED = re.compile(
    r"hallucinat|incorrect|inaccura|inconsist|unfaithful|unsupported|fabricat|wrong|contradict"
    r"|made[\s_-]?up|untrue|bad[\s_-](?:response|answer|output)|(?<=no)[\s_-]errors?\b"
    r"|幻觉|错误|虚构|捏造|不一致|不准确"
)
_SAYS_SUPPORTED = re.compile(
    r"factual|faithful|consisten|correct|accura|truth|veracity|support|grounded|attribut|passed"
    r"|entail"
    r"|事实|真实|准确|正确|属实|忠实"
)
_DENIED = re.compile(
    r"(?:^|[\W_])(?:not?|non|never|without|un|contradicts)[\W_]*(?:(?:an?|any|the|is)[\W_]+)?\Z"
    r"|(?:无|没有|没|未|不|非|未发现|不符合|不存在|不含)\Z"
)
_FREE = re.compile(r"[a-z]*[\W_]+free\b")


def said_in(name: str) -> LabelIs:
    """Return what yes means in a column of labels, where a part of its name says that; else ""."""
    plain = simplified(name).casefold()
    if found := _SAYS_HALLUCINATED.search(plain):
        return "supported" if _is_denied(plain, found) else "hallucinated"
    if found := _SAYS_SUPPORTED.search(plain):
        return "hallucinated" if _is_denied(plain, found) else "supported"
    return ""


def _is_denied(name: str, found: re.Match[str]) -> bool:
    """Return whether a name says the opposite of what is found in it: "not_supported", "无幻觉"."""
    before = name[: found.start()].replace("有无", "")
    return bool(_DENIED.search(before) or _FREE.match(name[found.end() :]))


def is_reference(name: str) -> bool:
    """Return whether the name says that somebody knows the answers in the column to be right."""
    return _known(name) in _REFERENCES


def is_any_answer(name: str) -> bool:
    """Return whether the name says "answer", and not whose."""
    return _known(name) in _UNDECIDED
