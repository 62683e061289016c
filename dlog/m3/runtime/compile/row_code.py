"""Owns the code of triggers for one row at a time: from their code for columns, without its loops.

Correct output: the same changes as by the code for columns, for an event of one row.  A column of one
row is one word, so columns become registers; a loop over the batch runs once; instructions that
often follow each other become one.  Code that may produce more than one row, or that calls Python, has no
such form.

Knows nothing of M3: it goes from words to words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from dlog.jit import Words
from dlog.m3.runtime import layout as o
from dlog.m3.runtime.machine.cofactor_plan import P_HELD

# What the operands of instructions are: f a frame, c a column, w a word, t an address; then the kind of all
# that follow.
OPERANDS = {
    o.END: ("", "w"),
    o.JUMP: ("t", "w"),
    o.JUMP_EMPTY: ("wt", "w"),
    o.JUMP_FALSE: ("ct", "w"),
    o.LOAD: ("fcw", "w"),
    o.HASH: ("fcw", "c"),
    o.LOOK_UP: ("fwcw", "c"),
    o.LOOK_UP_TIMES: ("fwcw", "c"),
    o.LOOK_UP_PRODUCT: ("fccccw", "w"),
    o.FOUND: ("fwcw", "c"),
    o.GATHER: ("fccc", "w"),
    o.SPREAD: ("fcc", "w"),
    o.ZERO: ("fc", "w"),
    o.ROW_SUM: ("fw", "c"),
    o.ADD: ("fw", "c"),
    o.MULTIPLY: ("fw", "c"),
    o.MULTIPLY_DECIMAL: ("fw", "c"),
    o.DIVIDE: ("fw", "c"),
    o.CONVERT: ("fw", "c"),
    o.COMPARE: ("fw", "c"),
    o.RANK: ("fcc", "w"),
    o.NONZERO: ("fw", "c"),
    o.EITHER: ("fccc", "w"),
    o.INVERT: ("fcc", "w"),
    o.FILTER: ("fcwc", "w"),
    o.ACCUMULATE: ("fwcw", "c"),
    o.TOTAL: ("fw", "c"),
    o.FORGET: ("fwcw", "c"),
    o.CLEAR: ("w", "w"),
    o.SLOTS: ("fwcw", "c"),
    o.FIND: ("fwcw", "c"),
    o.ELEMENTS: ("fwccw", "c"),
    o.BLOCK_ZERO: ("fww", "w"),
    o.BLOCK_NONZERO: ("fwwc", "w"),
    o.EXACT_ADD: ("fwcccc", "w"),
    o.EXACT_MERGE: ("fwccwc", "w"),
    o.EXACT_LOAD: ("fwcccw", "w"),
    o.RANGE_MERGE: ("fwwwwwc" + 4 * "wccc", "c"),
    o.RANGE_SUM: ("fwwww" + 4 * "wccc", "c"),
}
# Reading the event's one row, whatever the loop: where the out column and the input's column are.
_LOADS = {o.LOAD: (1, 2), o.DELTA_LOAD: (2, 3), o.INPUT_GATHER: (2, 3), o.DELTA_GATHER: (2, 3)}
# The instructions that read a column of hashes; plain maps do without.
_HASH_OPERAND = {
    o.LOOK_UP: 2, o.LOOK_UP_TIMES: 2, o.FOUND: 2, o.ACCUMULATE: 2, o.FORGET: 2, o.LOOK_UP_PRODUCT: 1,
    o.SLOTS: 2, o.FIND: 2,
}  # fmt: skip
_NOTHING = (o.ROOT, o.DELTA_OPEN, o.DELTA_NEXT)  # frames have one row


@dataclass
class _Instruction:
    op: int
    operands: list[int]
    targets: list[int] = field(default_factory=list)  # places of operands that are addresses


def row_code(
    code: Words, entry: int, start: int, is_plain: Callable[[int], bool], is_bare: Callable[[int], bool]
) -> tuple[list[int], list[tuple[int, int]]] | None:
    """The words of a trigger's code for one row, to be put at address `start`, and the pairs of addresses
    (there, where it comes from).  None if it has no such form.  O(words).

    A map at an address is bare if it has no index; plain if it also has at most one key, and one integer as
    value.
    """
    words = code.tolist()
    reached = _reached(words, entry)
    if any(words[at] not in OPERANDS and words[at] not in (*_LOADS, *_NOTHING) for at in reached):
        return None
    instructions = list(_fused(words, reached, is_plain, is_bare))
    ahead = _ahead(instructions)
    new: dict[int, int] = {}
    out = [o.ROW_AHEAD, start + 2 + len(ahead), *ahead] if ahead else []
    jumps: list[tuple[int, int]] = []
    hashes = {i.operands[_HASH_OPERAND[i.op]] for _, i in instructions if i.op in _HASH_OPERAND}
    for at, instruction in instructions:
        new[at] = start + len(out)
        jumps += [(len(out) + 2 + j, instruction.operands[j]) for j in instruction.targets]
        is_read = instruction.op != o.HASH or instruction.operands[1] in hashes
        if instruction.op >= 0 and is_read:
            operands = instruction.operands
            out += [instruction.op, start + len(out) + 2 + len(operands), *operands]
    for place, target in jumps:
        out[place] = new[target]
    return out, sorted((there, here) for here, there in new.items())


def _reached(words: list[int], entry: int) -> list[int]:
    """The addresses that the code of one row reaches, in order."""
    found: set[int] = set()
    waiting = [entry]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting += _targets(words, at)
            if words[at] not in (o.JUMP, o.END):
                waiting.append(words[at + 1])
    return sorted(found)


def _targets(words: list[int], at: int) -> list[int]:
    """Jump targets of an instruction.  A loop over the batch ends after its first round."""
    if words[at] not in (o.JUMP, o.JUMP_EMPTY, o.JUMP_FALSE):
        return []
    target = words[at + 2] if words[at] == o.JUMP else words[at + 3]
    if words[target] == o.DELTA_NEXT and target < at:
        target = words[target + 4]
    return [target]


def _fused(
    words: list[int], reached: list[int], is_plain: Callable[[int], bool], is_bare: Callable[[int], bool]
) -> Iterator[tuple[int, _Instruction]]:
    """All instructions, with those that can be merged as one.  No jump leads into the middle of such a
    one.
    """
    targets = {target for at in reached for target in _targets(words, at)}
    i = 0
    while i < len(reached):
        run, kind = [reached[i]], _kind(words, reached[i])
        i += 1
        while kind and i < len(reached) and reached[i] not in targets and _kind(words, reached[i]) == kind:
            run.append(reached[i])
            i += 1
        if words[run[0]] in _NOTHING:
            yield run[0], _Instruction(-1, [])
        elif kind == (o.ROW_LOADS,):
            yield run[0], _Instruction(o.ROW_LOADS, [len(run), *_load_operands(words, run)])
        elif kind:
            ones = [_one(words, at).operands for at in run]
            pairs = [word for one in ones for word in (one[1 if kind[0] == o.ROW_FINDS else -2], one[-1])]
            given = [ones[0][4]] if kind[0] == o.ROW_FINDS else []
            yield run[0], _Instruction(kind[0], [*given, len(run), *pairs])
        else:
            yield run[0], _for_one_row(_one(words, run[0]), words, is_plain, is_bare)


def _kind(words: list[int], at: int) -> tuple[int, ...]:
    """What consecutive instructions share if they can be merged; () if it stays alone."""
    op, operands = words[at], words[at + 2 : words[at + 1]]
    if op in _LOADS:
        return (o.ROW_LOADS,)
    if op == o.CONVERT and operands[1] == o.INT_TO_BITS:
        return (o.ROW_FLOATS,)
    if op == o.FIND and operands[3] == 1:
        return (o.ROW_FINDS, operands[4])
    return ()


def _ahead(instructions: list[tuple[int, _Instruction]]) -> list[int]:
    """Which columns of the input are keys of which maps: the operands of ROW_AHEAD; none if there are
    none.
    """
    column: dict[int, int] = {}  # of registers
    maps: dict[tuple[int, ...], list[int]] = {}  # by their keys
    for _, instruction in instructions:
        if instruction.op == o.ROW_LOADS:
            operands = instruction.operands
            column |= dict(zip(operands[1::2], operands[2::2], strict=True))
        keys, found = _reads(instruction)
        if keys and all(key in column for key in keys):
            maps.setdefault(tuple(column[key] for key in keys), []).extend(found)
    out: list[int] = []
    for columns, found in maps.items():
        out += [len(columns), *columns, len(set(found)), *dict.fromkeys(found)]
    is_wide = any(i.op in (o.ROW_FINDS, o.ROW_SLOT, o.SLOTS) for _, i in instructions)
    return [int(is_wide), *out, 0] if out else []


def _reads(instruction: _Instruction) -> tuple[list[int], list[int]]:
    """The registers of keys, and the maps in which an instruction looks them up."""
    operands = instruction.operands
    match instruction.op:
        case o.ROW_PRODUCT:
            return operands[:1], operands[4:]
        case o.ROW_ADD | o.ROW_SLOT:
            return operands[1:2], operands[:1]
        case o.ROW_FINDS:
            return operands[:1], operands[2::2]
        case o.SLOTS | o.ACCUMULATE | o.LOOK_UP | o.LOOK_UP_TIMES | o.FOUND:
            return operands[4 : 4 + operands[3]], operands[1:2]
    return [], []


def _for_one_row(
    given: _Instruction, words: list[int], is_plain: Callable[[int], bool], is_bare: Callable[[int], bool]
) -> _Instruction:
    """The same, specialised for plain maps, or for sums that can be deferred."""
    operands = given.operands
    if given.op == o.ELEMENTS and words[operands[4] + P_HELD] != 0:
        return _Instruction(
            o.ROW_HOLD, [operands[1], operands[3], words[operands[4] + P_HELD], *operands[5:]]
        )
    if given.op == o.SLOTS and operands[3] == 1 and is_bare(operands[1]):
        return _Instruction(o.ROW_SLOT, [operands[1], *operands[4:6]])
    if given.op == o.LOOK_UP_PRODUCT and all(is_plain(m) for m in operands[6:]):
        return _Instruction(o.ROW_PRODUCT, operands[2:])
    if given.op == o.ACCUMULATE and is_plain(operands[1]):
        return _Instruction(o.ROW_ADD, [operands[1], *operands[4:6]])
    if given.op == o.TOTAL and is_plain(operands[1]):
        return _Instruction(o.ROW_TOTAL, operands[1:3])
    return given


def _load_operands(words: list[int], loads: list[int]) -> Iterator[int]:
    for at in loads:
        out, column = _LOADS[words[at]]
        yield words[at + 2 + out] // o.CHUNK
        yield words[at + 2 + column]


def _one(words: list[int], at: int) -> _Instruction:
    op = words[at]
    fixed, rest = OPERANDS[op]
    operands, targets = [], []
    for j, word in enumerate(words[at + 2 : words[at + 1]]):
        kind = fixed[j] if j < len(fixed) else rest
        if kind == "t":
            targets.append(j)
            word = _targets(words, at)[0]
        elif kind == "f":
            word = o.ONE
        elif kind == "c":
            word //= o.CHUNK
        operands.append(word)
    return _Instruction(op, operands, targets)
