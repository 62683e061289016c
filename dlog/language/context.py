"""Owns tokens that depend on their position, so that the grammar needs no exceptions.

`<-` is an arrow only between a head and a body, `+ - ^` mark deltas only where an item of a list of deltas
starts, `sum` is a keyword only before its `:`.  One statement is settled at a time, in O(its tokens).
"""

from __future__ import annotations

from lark import Token

from dlog.language.vocabulary import AGGREGATES, QUALIFIERS, WORD_OPERATORS, WORD_PREFIXES

OPENERS = {"LPAR": 1, "LSQB": 1, "LBRACE": 1, "RPAR": -1, "RSQB": -1, "RBRACE": -1}
# After these an operand is complete, so that an operator or the end of the term must follow.
OPERAND_ENDS = frozenset(
    {"NAME", "WILDCARD", "INT", "FLOAT", "STRING", "RPAR", "RSQB", "RBRACE", "DOLLAR", "NIL"}
)

_DELTA_TOKENS = frozenset({"PLUS", "MINUS", "CARET"})


def settle(tokens: list[Token]) -> None:
    """Changes the types of tokens in place.  REQUIRES: the tokens of one statement, not empty."""
    first = tokens[0].type
    if first == "FACTS":
        return
    if first.startswith("D_"):
        if first == "D_DECL":
            _settle_qualifiers(tokens)
        return
    _join_names(tokens)
    _settle_arrows(tokens)
    _settle_deltas(tokens)
    _settle_aggregates(tokens)
    _settle_words(tokens)


def _join_names(tokens: list[Token]) -> None:
    """`person:name(` is one name, and so is all behind a backtick; but not `x:p(` in `sum x:p(x)`."""
    if not any(token.type == "COLON" for token in tokens):
        return
    joined: list[Token] = []
    index, aggregates = 0, False
    while index < len(tokens):
        token = tokens[index]
        end = _end_of_name(tokens, index)
        follows = tokens[end].type if end < len(tokens) else ""
        quoted = bool(joined) and joined[-1].type == "BACKTICK"
        aggregates |= token.type == "NAME" and token.value in AGGREGATES and not quoted
        if end > index + 1 and (quoted or (follows in ("LPAR", "LSQB") and not aggregates)):
            text = "".join(str(part.value) for part in tokens[index:end])
            kind = "PROPERTY" if text.startswith("lang:") and index == 0 else "NAME"
            joined.append(Token(kind, text, start_pos=token.start_pos, end_pos=tokens[end - 1].end_pos))
            index = end
            continue
        if token.type in _STOPS or token.type in OPENERS:
            aggregates = False
        joined.append(token)
        index += 1
    tokens[:] = joined


def _end_of_name(tokens: list[Token], index: int) -> int:
    """Where a name with colons, without blanks, ends."""
    end = index + 1
    if tokens[index].type != "NAME":
        return end
    while [token.type for token in tokens[end : end + 2]] == ["COLON", "NAME"] and all(
        tokens[at].end_pos == tokens[at + 1].start_pos for at in (end - 1, end)
    ):
        end += 2
    return end


def _settle_arrows(tokens: list[Token]) -> None:
    """Keeps the first `<-` of a rule as its arrow; any other is a comparison with a negative term.

    A query and a constraint have no arrow.
    """
    depth = 0
    no_arrow = tokens[0].type == "QUERY" or any(t.type == "IMPLIES" for t in tokens)
    settled: list[Token] = []
    for token in tokens:
        depth += OPENERS.get(token.type, 0)
        if token.type != "ARROW":
            settled.append(token)
        elif not no_arrow and depth <= 0:
            no_arrow = True
            settled.append(token)
        else:
            settled.extend(_split(token) if token.value == "<-" else [token])
    tokens[:] = settled


def _split(token: Token) -> list[Token]:
    """`<-` as `<` and `-`."""
    start = token.start_pos or 0
    return [
        Token("CMP", "<", start_pos=start, end_pos=start + 1),
        Token("MINUS", "-", start_pos=start + 1, end_pos=start + 2),
    ]


def _settle_deltas(tokens: list[Token]) -> None:
    if tokens[0].type not in _DELTA_TOKENS:
        return
    depth, at_item = 0, True
    for index, token in enumerate(tokens):
        if token.type == "ARROW":
            _settle_events(tokens, index)
            break
        if at_item and token.type in _DELTA_TOKENS:
            token.type = "DELTA"
        depth += OPENERS.get(token.type, 0)
        at_item = token.type == "COMMA" and depth == 0


_BEFORE_ITEMS = frozenset({"ARROW", "AGG_CLOSE", "COMMA", "SEMICOLON", "BANG", "LPAR", "LBRACE"})
_BEHIND_ITEMS = frozenset({"COMMA", "SEMICOLON", "END", "RPAR", "RBRACE"})


def _settle_events(tokens: list[Token], start: int) -> None:
    """In the body of a delta rule `-p(x)` and `-f[x] = y` are events; `-f(x) < 3` is a comparison, and so is
    what arguments and parts of terms contain."""
    closers = _closers(tokens)
    formulas = [True]  # whether conditions are between the brackets that are open
    for index in range(start + 1, len(tokens)):
        token, before = tokens[index], tokens[index - 1].type
        if OPENERS.get(token.type, 0) > 0:
            behind = (
                tokens[closers[index] + 1].type if closers.get(index, -2) + 1 in range(len(tokens)) else ""
            )
            grouped = token.type == "LPAR" and before in _BEFORE_ITEMS and behind in _BEHIND_ITEMS
            formulas.append(token.type == "LBRACE" or (grouped and formulas[-1]))
        elif OPENERS.get(token.type, 0) < 0 and len(formulas) > 1:
            formulas.pop()
        elif before in _BEFORE_ITEMS and formulas[-1] and _is_event(tokens, index, closers):
            token.type = "EVENT"


def _is_event(tokens: list[Token], sign: int, closers: dict[int, int]) -> bool:
    kinds = [token.type for token in tokens[sign + 1 : sign + 3]]
    if (
        tokens[sign].type not in _DELTA_TOKENS
        or kinds not in (["NAME", "LPAR"], ["NAME", "LSQB"])
        or sign + 2 not in closers
    ):
        return False
    end = closers[sign + 2] + 1
    behind = tokens[end].type if end < len(tokens) else ""
    return behind == "EQ" if kinds[1] == "LSQB" else behind in _BEHIND_ITEMS


def _closers(tokens: list[Token]) -> dict[int, int]:
    """The bracket that closes each bracket, by their places."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(tokens):
        step = OPENERS.get(token.type, 0)
        if step > 0:
            opened.append(index)
        elif step < 0 and opened:
            found[opened.pop()] = index
    return found


def _settle_words(tokens: list[Token]) -> None:
    previous = ""
    for index, token in enumerate(tokens):
        if token.type == "NAME" and previous != "BACKTICK":
            follows = tokens[index + 1].type if index + 1 < len(tokens) else ""
            token.type = _word_type(str(token.value), previous in OPERAND_ENDS, follows)
        previous = token.type


def _word_type(word: str, behind_operand: bool, follows: str) -> str:
    if word in WORD_OPERATORS and behind_operand:
        return "WORD_OP"
    if word in WORD_PREFIXES and not behind_operand:
        return "PREFIX"
    if word == "nil" and follows not in ("LPAR", "LSQB"):
        return "NIL"
    if word == "as" and follows == "LPAR":
        return "AS"
    return "WILDCARD" if word == "_" else "NAME"


# Between an aggregate and its colon none of these can be outside brackets.
_STOPS = frozenset(
    {"COMMA", "SEMICOLON", "END", "EQ", "CMP", "ARROW", "IMPLIES", "BANG", "AGG_OPEN", "AGG_CLOSE"}
)
# A name cannot be followed by one of these; an aggregate can.
_OPERAND_STARTS = frozenset({"NAME", "INT", "FLOAT", "STRING", "DOLLAR", "AT", "COLON"})
_MAYBE_STARTS = frozenset({"LPAR", "LSQB", "MINUS"})


class _Level:
    """One stretch of tokens between brackets and stops: names that may be aggregates, and its colons."""

    def __init__(self) -> None:
        self.sure: list[Token] = []
        self.maybe: list[Token] = []
        self.colons = 0

    def close(self) -> None:
        """Each colon has one aggregate: first those that cannot be anything else, then the leftmost."""
        for token in (self.sure + self.maybe)[: self.colons]:
            token.type = "AGGREGATE"


def _settle_aggregates(tokens: list[Token]) -> None:
    """`sum x : {...}`, but `sum(x, y)` and `sum min(x, y) : {...}`, where only `sum` has a colon."""
    if not any(t.type == "COLON" for t in tokens):
        return
    levels = [_Level()]
    for index, token in enumerate(tokens):
        step = OPENERS.get(token.type, 0)
        if step > 0:
            levels.append(_Level())
        elif step < 0:
            levels.pop().close()
            levels = levels or [_Level()]
        elif token.type in _STOPS:
            levels.pop().close()
            levels.append(_Level())
        elif token.type == "COLON":
            levels[-1].colons += 1
        elif token.type == "NAME" and index + 1 < len(tokens) and _may_aggregate(tokens, index):
            follows = tokens[index + 1]
            if follows.type in _OPERAND_STARTS and follows.value not in WORD_OPERATORS:
                levels[-1].sure.append(token)
            elif follows.type in _MAYBE_STARTS or follows.type == "NAME":
                levels[-1].maybe.append(token)
    for level in levels:
        level.close()


def _may_aggregate(tokens: list[Token], index: int) -> bool:
    """Whether a name is that of an aggregate, or of a functor, which may be one."""
    return tokens[index].value in AGGREGATES or (index > 0 and tokens[index - 1].type == "AT")


def _settle_qualifiers(tokens: list[Token]) -> None:
    depth, before = 0, {"RPAR", "QUALIFIER"}
    for index, token in enumerate(tokens):
        depth += OPENERS.get(token.type, 0)
        follows = tokens[index + 1].type if index + 1 < len(tokens) else ""
        if depth == 0 and token.type == "CHOICE":
            before.add("NAME")  # the last argument of a choice domain
        if index > 0 and depth == 0 and tokens[index - 1].type in before and token.type == "NAME":
            if token.value not in QUALIFIERS or follows in ("LPAR", "LSQB"):
                return
            token.type = "QUALIFIER"
