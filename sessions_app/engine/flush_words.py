"""By which words people lay something down: in English, and the plainest ones of German, French, Spanish, Chinese and Japanese."""

import re

_NOT_RULES = r"(?:worry|know|think|see|care|mind|have|need|understand|remember|want to|believe|feel|get|hesitate|like)\b"
_BEFORE = r"(?:^|[.;:,]\s*|\b(?:please|but|and|so|must|should|we|you|to)\s+)"
"""What stands before a rule, where the same word in the middle of a sentence only describes."""

STANDING = (
    re.compile(
        r"\b(?:must(?:n't| not)?(?=\s+\w)(?<!\ba must)|not allowed|avoid|shouldn't|should (?:always|never|not|only)|"
        r"is required|are required|from now on|only ever|at all times)\b"
        r"|(?:^|[.;:]\s*|\b(?:please|but|and|should|must)\s+)(?:make sure|ensure)\s+\w"
        rf"|{_BEFORE}never\s+(?!here|again|mind|seen|before|happen|work|fail|use[ds]\b)\w"
        rf"|{_BEFORE}always\s+(?!fails?|works?|was|were|is\b|the same)\w"
        rf"|{_BEFORE}(?:do not|don't|don’t|dont)\s+(?!{_NOT_RULES})",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:darf(?:st)? (?:nie|niemals|nicht|kein\w{0,2}|nur)|dürfen (?:nie|niemals|nicht|keine?|nur)|auf keinen fall|"
        r"bitte (?:nie|niemals|immer|nur|keine?n?)|(?:muss|müssen) (?:immer|stets|unbedingt))\b|^(?:niemals|nie|immer) \w",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:il ne faut (?:pas|jamais)|il faut toujours|ne jamais \w|veuillez ne|ne (?:doit|doivent|dois) (?:pas|jamais)|"
        r"(?:doit|doivent) (?:toujours|rester|être))|^(?:toujours|jamais) \w",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:nunca (?:se )?(?:debe|deben)|no (?:se )?deben?|deben? (?:siempre|nunca)|por favor,? no)\b|^(?:nunca|siempre) \w",
        re.IGNORECASE,
    ),
    re.compile("必须|务必|禁止|绝不|千万不要|请不要|永远不要|不得|一律|必ず|絶対に|しないで|してはいけ|してはなら"),
)
PREFERENCE = (
    re.compile(
        r"\b(?:(?:i|we)(?:'d|’d| would)? (?:(?:much |really |strongly )?prefer|rather)|i like (?:it when|to have|my|our)|my preference|"
        r"our convention|house style|ich bevorzuge|wir bevorzugen|(?:mir|uns) ist lieber|je préfère|nous préférons|prefiero|preferimos)\b"
        r"|我更?喜欢|我们?偏好|好みは|方が好き",
        re.IGNORECASE,
    ),
)
DECISION = (
    re.compile(
        r"\b(?:(?:i|we)(?:'ve|’ve| have)? (?:decided|agreed|chose)|the decision|let(?:'s|’s| us) (?:go with|use|keep|stick|switch|drop)|"
        r"we(?:'ll|’ll| will) (?:go with|use|keep|stick with|switch)|go with|"
        r"(?:use|using|keep|take|choose|chose|switch to|stay with|stick with)\b[^.;]{1,80}\b(?:instead of|rather than))\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:wir haben (?:uns|beschlossen|entschieden)|wir nehmen|nous avons (?:décidé|choisi)|hemos (?:decidido|elegido))\b"
        r"|我们?决定|改用|に決め",
        re.IGNORECASE,
    ),
)
TICKET = re.compile(
    r"\b(?!(?:UTF|SHA|ISO|GPT|RFC|HTTP|AES|MD|COVID|TLS|IPV?|HTML|PEP|AWS|S3|EC2)-)[A-Z][A-Z0-9]{1,9}-\d{1,7}\b|"
    r"[\w.-]{1,60}/[\w.-]{1,60}#\d{1,7}"
)
_MAY_HOLD = re.compile(
    r"://|\b(?:must|make sure|ensure|not allowed|avoid|should|required|from now on|only ever|at all times|never|always|"
    r"do not|don't|don’t|dont|prefer|rather|i like|my preference|our convention|house style|decided|agreed|chose|decision|"
    r"let's|let’s|let us|we'll|we’ll|we will|go with|instead of|[a-z][a-z0-9]{1,9}-\d|[\w.-]{1,60}#\d|"
    r"dar(?:f|fst)|dürfen|fall|bitte|muss|müssen|niemals|nie|immer|bevorzug|lieber|wir|faut|jamais|veuillez|doi|toujours|préf|nous|"
    r"nunca|deben?|siempre|favor|pref|hemos)"
    "|[必务禁绝千请永不一絶しす喜偏好决改決]",
    re.IGNORECASE,
)
_ASKS = re.compile(r"(?:can|could|would|will) you\b|.*[?？]", re.IGNORECASE | re.DOTALL)
_POINTS_BACK = re.compile(r"(?:it|its|they|their|this|that|these|those|he|she|both|neither|none of)\b", re.IGNORECASE)
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MORE = 2
"""A letter of these says as much as one of an alphabet and so many more."""


def may_hold(text: str) -> bool:
    """Whether it may hold anything at all: most messages do not, and need not be taken apart."""
    return _MAY_HOLD.search(text) is not None


def asks(sentence: str) -> bool:
    """Whether it asks for something to be done or said now, and lays nothing down."""
    return _ASKS.match(sentence) is not None


def points_back(sentence: str) -> bool:
    """Whether it says nothing without the sentence before it."""
    return _POINTS_BACK.match(sentence) is not None


def length_of(sentence: str) -> int:
    """Its length as of a text in an alphabet, 0 without any letter."""
    if not any(letter.isalpha() for letter in sentence):
        return 0
    return len(sentence) + _MORE * len(_WIDE.findall(sentence))
