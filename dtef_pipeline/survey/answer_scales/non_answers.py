"""Answer options that do not answer the question: don't know, refused, not applicable, and codes that only the interviewer records.

They have no position on a scale. Some phrases are answers among certain others (`not sure` below `very sure`): `find_word_of_degree`
returns the word that shows this.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from dtef_pipeline.identity import normalize_text

Role = Literal["substantive", "dont_know", "refused", "volunteered"]
"""What an option is: an answer, or one of three that have no place on the scale; volunteered ones are not read to respondents."""
OPTION_ROLES: tuple[Role, ...] = get_args(Role)

_NOT_READ_OUT = (
    r"(?:vol(?:\.|unteered)?|do not read(?: out)?|don't read(?: out)?|not read(?: out)?|dnr|spontaneous(?:ly)?|spont\.?)"
)
_MARK_OF_NOT_READ = re.compile(
    rf"[(\[{{]\s*{_NOT_READ_OUT}\s*[.:]?\s*[)\]}}]|^{_NOT_READ_OUT}\s*[:–—-]|\s[–—-]\s{_NOT_READ_OUT}\Z|\svol\.?\Z"
)
"""`(VOL)`, `[DO NOT READ]`, `DO NOT READ: ...`, `... - volunteered`."""

_QUANTITY = r"(?! (?:anything|nothing|anyone|anybody|any|much|many|a lot|a thing|very|ever|each other|how to)\b)"
_NOT = r"(?:i )?(?:really |just |simply )?(?:don't|do not|didn't|did not|can't|can ?not|couldn't|could not|unable to)"
_OF_TIME = r"(?: (?:yet|now|right now|at this (?:time|point)|at the moment))?"
_REST_OF_PHRASE = r"(?: (?:about|of|on|what|which|whether|if|how|who|why|i|that|this|it|enough|to)\b.*)?"
_BARE_AMOUNT = r"^(?:(?:quite )?a lot|a (?:little|bit)|a great deal|a fair amount|some|much|a little bit)\Z"
# (pattern of a phrase, the word by which it is an answer where another option has it too)
_NO_ANSWER_PHRASES: tuple[tuple[str, str], ...] = (
    (rf"{_NOT} (?:know|say|answer|tell|remember|recall|choose|judge|rate|decide|guess){_OF_TIME}", ""),
    (rf"{_NOT} know (?:the answer|yet|enough\b.*|for (?:sure|certain)|which .*|whether .*)", ""),
    (rf"{_NOT} know{_QUANTITY}\b.*", r"know\w*|aware|informed|familiar"),
    (rf"{_NOT} (?:say|answer|tell|choose|judge|rate|decide|guess)(?! (?:no|yes|the difference|apart)\b){_QUANTITY}\b.*", ""),
    (rf"{_NOT} (?:remember|recall){_QUANTITY}\b.*", r"remember\w*|recall\w*"),
    (
        rf"(?:i'm |i am )?(?:still |really |just )?(?:not(?: very| really| quite| entirely)? sure|unsure){_OF_TIME}{_REST_OF_PHRASE}",
        r"sure",
    ),
    (
        rf"(?:i'm |i am )?(?:still |really )?(?:not(?: very| really| quite)? certain|uncertain){_OF_TIME}{_REST_OF_PHRASE}",
        r"certain",
    ),
    (rf"(?:i'm |i am |have )?(?:still )?(?:undecided|not decided|not made up my mind){_OF_TIME}{_REST_OF_PHRASE}", r"decided"),
    (
        r"(?:it's |it is )?(?:hard|difficult|impossible|too (?:early|soon)) to (?:say|tell|answer|decide|judge|know|choose|distinguish)",
        "",
    ),
    (r"(?:i )?(?:have )?no (?:opinion|answer|response|comment|data|reply)(?: given)?", ""),
    (r"(?:i )?(?:have )?no idea", r"(?:clear|some|rough|vague|general) idea"),
    (r"(?:i )?(?:haven't|have not) (?:thought|read|seen) (?:much|enough)\b.*", ""),
    (r"(?:i )?(?:don't|do not) have an(?:y)? (?:opinion|answer|idea)\b.*", ""),
    (
        r"(?:i )?(?:would |i'd )?(?:prefer|rather) not(?: to)? (?:say|answer|disclose|respond|share|tell|specify|state|comment)\b.*",
        "",
    ),
    (r"(?:i'd |i would )?(?:rather not|prefer not)", ""),
    (r"(?:i )?(?:do not|don't) (?:want|wish|like) to (?:say|answer|disclose|respond)\b.*", ""),
    (r"(?:i )?(?:refused?|refusal|declined?|choose not|chose not)(?: to (?:say|answer|respond))?", ""),
    (r"skip(?:ped)?(?: on web| this question)?|(?:web |left )?blank|(?:did not|didn't|has not) (?:answer|respond)(?:ed)?", ""),
    (
        r"not (?:answered|stated|ascertained|asked|known|reported|disclosed|specified|provided|given)|undisclosed|unspecified",
        "",
    ),
    (r"unknown|no longer known", r"known"),
    (r"not available", r"available"),
    (r"non-?response|item nonresponse|inap(?:plicable|p)?|(?:other )?missing", ""),
    (r"(?:this |it |that )?(?:does not|doesn't) apply(?: to (?:me|us|my .*))?|not applicable\b.*", r"appl(?:y|ies|icable)"),
    (r"not relevant(?: to (?:me|us))?", r"relevant"),
    (r"(?:i've |i have )?never (?:used|tried)\b.*", r"used?|tried|try"),
    (
        r"(?:i've |i have )?never heard of\b.*|(?:i )?(?:haven't|have not) heard of\b.*",
        rf"heard|familiar|know\w*|aware|{_BARE_AMOUNT}",
    ),
    (r"(?:i )?(?:haven't|have not) heard enough\b.*", r"heard"),
    (r"dk|d\.k\.?|na|n\.a\.?|ref|rf|nsnc|nsnr|nspp|nsp", ""),
)
_COMPILED = tuple((re.compile(pattern), word and re.compile(rf"\b(?:{word})\b")) for pattern, word in _NO_ANSWER_PHRASES)
_ABBREVIATED = (
    (r"\bn/a\b", "na"),
    (r"\bn\.?s\.?\s?[/-]\s?n\.?c\.?(?!\w)", "nsnc"),
    (r"\bn\.?s\.?\s?[/-]\s?n\.?r\.?(?!\w)", "nsnr"),
)
_CODE_OF_LABEL = re.compile(r"^-?\d{1,4}[.):]?\s+(?=\D)")
"""The code before a label: `99 Refused`."""
_BESIDE_A_PHRASE = re.compile(
    r"(?:it |this |that )?(?:all )?depends\b.*|multiple answers\b.*|other|nr|nc|it's hard\b.*|it is hard\b.*|don't care"
    r"|none of (?:the above|these|those|them)"
)
"""Texts that may be added to a phrase: `Unsure / It depends on the specifics`, `Other/Don't know`."""
_SEPARATOR = re.compile(r"\s*(?:[/;,|()\[\]]|\b(?:or|and|ou|et|oder|und|o|y|e)\b|\s[–—-]\s)\s*")

_UNSURE = re.compile(
    r"(?:i'm |i am )?(?:not sure|unsure|not certain|uncertain|undecided)|(?:it's |it is )?hard to say|(?:i have )?no opinion"
)

_OTHER_LANGUAGES = re.compile(
    normalize_text(
        "no sabe|no sabe no contesta|sin opinión|sem opinião|imposible responder|impossible de répondre|impossível responder"
        "|невозможно ответить|невозможно сказать|нет мнения|неможливо відповісти|impossibile rispondere|unmöglich zu sagen"
        "|no sé|no sabría decir|no contesta|no responde|ninguna respuesta|sin respuesta|prefiero no contestar|prefiero no responder"
        "|prefiero no decirlo|prefiero no decir|no estoy seguro|no estoy segura|no aplica|no procede|rechaza contestar|se niega a responder"
        "|não sabe|não sei|não respondeu|não responde|prefiro não responder|prefiro não dizer|não se aplica|sem resposta|recusa|recusou"
        "|não tenho certeza|ne sait pas|je ne sais pas|nsp|sans opinion|sans réponse|ne se prononce pas|refus|refuse de répondre"
        "|préfère ne pas répondre|je préfère ne pas répondre|préfère ne pas dire|pas de réponse|non concerné|non applicable|ne répond pas"
        "|weiß nicht|ich weiß nicht|weiß ich nicht|weiß es nicht|keine angabe|keine angaben|k.a.|keine antwort|keine meinung|verweigert"
        "|möchte ich nicht sagen|möchte nicht antworten|möchte ich nicht beantworten|bin mir nicht sicher|nicht sicher|unentschieden"
        "|non so|non sa|non risponde|nessuna risposta|preferisco non rispondere|preferisco non dirlo|rifiuta|senza opinione"
        "|weet niet|weet ik niet|weet het niet|geen antwoord|geen mening|wil niet zeggen|zeg ik liever niet|niet van toepassing"
        "|vet ej|vet inte|inget svar|vill ej svara|ved ikke|ikke svar|vil ikke svare|vet ikke|en osaa sanoa|ei vastausta|en tiedä"
        "|nie wiem|trudno powiedzieć|odmowa odpowiedzi|odmowa|brak odpowiedzi|nevím|neví|neodpověděl|neviem|nem tudja|nem tudom"
        "|nem válaszol|nu știu|nu știe|nu răspunde|nu răspund|ne znam|bez odgovora|не знаю|затрудняюсь ответить|трудно сказать"
        "|нет ответа|отказ от ответа|отказ|не зная|важко сказати|важко відповісти|немає відповіді|відмова|δεν ξέρω|δεν γνωρίζω|δεν απαντώ"
        "|bilmiyorum|bilmiyor|fikrim yok|fikri yok|cevap yok|cevap vermek istemiyorum|yanıt yok|لا أعرف|لا أدري|لا اعرف|رفض الإجابة"
        "|لا إجابة|بدون إجابة|أفضل عدم الإجابة|نمی‌دانم|نمی دانم|לא יודע|לא יודעת|מסרב|मुझे नहीं पता|पता नहीं|मालूम नहीं|कह नहीं सकते|जवाब नहीं"
        "|tidak tahu|tidak menjawab|tidak jawab|tak tahu|sijui|hakuna jibu|amekataa kujibu|không biết|không trả lời|hindi alam|ไม่ทราบ"
        "|ไม่ตอบ|জানি না"
        "|不知道|不清楚|不确定|不確定|拒答|拒绝回答|拒絕回答|无回答|無回答|没有回答|不想说|不愿回答|说不清|很难说|難以回答|沒有意見|没有意见"
        "|わからない|分からない|答えたくない|回答しない|回答拒否|모르겠다|모르겠음|모름|잘 모르겠다|무응답|응답거절|응답 거절"
    )
)


def is_non_answer(text: str) -> bool:
    """Return whether an option by itself is a non-answer: `DK/Refused`, `Missing; Not available`, `Other (VOL)`, `No sabe / No contesta`."""
    plain = _strip_label_code(text)
    return bool(_MARK_OF_NOT_READ.search(plain)) or _is_phrase(plain)


def can_be_middle(text: str) -> bool:
    """Return whether a non-answer may mean a position between two answers, such as `not sure` and `hard to say`, rather than no answer."""
    plain = _strip_label_code(text)
    return not _MARK_OF_NOT_READ.search(plain) and bool(_UNSURE.fullmatch(plain))


def find_word_of_degree(text: str) -> re.Pattern[str] | None:
    """Return the word that makes a non-answer an answer if other options contain it, such as `sure` of `not sure`, or None without such a
    word.
    """
    plain = _strip_label_code(text)
    return next((word or None for pattern, word in _COMPILED if pattern.fullmatch(plain)), None)


def _strip_label_code(text: str) -> str:
    text = normalize_text(text).replace("’", "'").replace("‘", "'").rstrip(" .,!。")
    for pattern, short in _ABBREVIATED:
        text = re.sub(pattern, short, text)
    return _CODE_OF_LABEL.sub("", text)


def _is_phrase(plain: str) -> bool:
    if _is_one(plain):
        return True
    first, *tail = [part.strip(" .'\"") for part in _SEPARATOR.split(plain) if part.strip(" .'\"")] or [""]
    if re.fullmatch(r"(?:other )?missing", first):
        return True
    parts = [_is_one(part) for part in (first, *tail)]
    return any(parts) and all(
        is_known or _BESIDE_A_PHRASE.fullmatch(part) for is_known, part in zip(parts, (first, *tail), strict=True)
    )


def _is_one(phrase: str) -> bool:
    return bool(_OTHER_LANGUAGES.fullmatch(phrase)) or any(pattern.fullmatch(phrase) for pattern, _ in _COMPILED)
