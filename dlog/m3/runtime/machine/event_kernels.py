"""Owns events: which rows a trigger processes together, and going from one to the next.

Knows no instructions.
"""

from __future__ import annotations

from dlog.jit import Words, helper, kernel, pointer
from dlog.m3.runtime.layout import (
    BY_ROW,
    COUNT,
    E_END,
    E_ENTRY,
    E_FIRST,
    E_INPUT,
    E_ROWS,
    E_SELECTED,
    E_STEP,
    E_STRIDE,
    E_WORDS,
    EVENT,
    FIRST,
    INPUT,
    ONE,
    PC,
    ROW_CODE_ROWS,
    S_DELETE,
    S_INPUT,
    S_INSERT,
    S_NEXT,
    S_SIGNS,
    S_STRIDE,
    S_WORDS,
    SELECTED,
    STRIDE,
)


@kernel
def start(state_words: Words, event_words: Words, n_events: int) -> bool:
    """Prepare the state for the first event; False if there is none."""
    state_words[EVENT] = -1
    state_words[FIRST] = 0
    state_words[COUNT] = 0
    state_words[ONE] = 1
    return bool(next_rows(pointer(event_words), pointer(state_words), n_events))


@helper
def next_rows(events, state, n_events):
    """Go to the next rows of the event, or to the next event; False at the end."""
    event = state[EVENT]
    at = event * E_WORDS
    first = state[FIRST] + state[COUNT]
    while event < 0 or first >= events[at + E_END]:
        event += 1
        at = event * E_WORDS
        if event >= n_events:
            return False
        first = events[at + E_FIRST]
    rows = events[at + E_ROWS]
    state[EVENT] = event
    state[INPUT], state[STRIDE] = events[at + E_INPUT], events[at + E_STRIDE]
    state[FIRST], state[SELECTED] = first, events[at + E_SELECTED]
    if rows >= 0:
        state[BY_ROW], state[PC], state[COUNT] = 1, rows, 1
    else:
        state[BY_ROW], state[PC] = 0, events[at + E_ENTRY]
        state[COUNT] = min(events[at + E_STEP], events[at + E_END] - first)
    return True


@kernel
def make_events(
    which_words: Words, batch_words: Words, input_words: Words, step_words: Words, out: Words, n: int
) -> int:
    """An event for each run of rows that one trigger processes together; returns how many.  O(n).

    Row i is the next one of step which[i], in batch batch[i].
    """
    which, batch, inputs, steps = (
        pointer(which_words), pointer(batch_words), pointer(input_words), pointer(step_words),
    )  # fmt: skip
    made, i = 0, 0
    while i < n:
        s = which[i] * S_WORDS
        signs, first = steps[s + S_SIGNS], steps[s + S_NEXT]
        sign = inputs[signs + first] if signs >= 0 else 1
        last = i + 1
        while last < n and which[last] == which[i] and batch[last] == batch[i]:
            if signs >= 0 and inputs[signs + first + last - i] != sign:
                break
            last += 1
        steps[s + S_NEXT] = first + last - i
        how = s + (S_INSERT if sign > 0 else S_DELETE)
        if steps[how] >= 0:
            write_event(steps, s, how, first, last - i, signs < 0, out, made * E_WORDS)
            made += 1
        i = last
    return made


@helper
def write_event(steps, s, how, first, n, is_batch, out, at):
    out[at + E_ENTRY], out[at + E_STEP] = steps[how], steps[how + 1]
    out[at + E_INPUT], out[at + E_STRIDE] = steps[s + S_INPUT], steps[s + S_STRIDE]
    out[at + E_FIRST], out[at + E_END] = first, first + n
    out[at + E_SELECTED] = 0
    out[at + E_ROWS] = steps[how + 2] if n == 1 or (n <= ROW_CODE_ROWS and not is_batch) else -1
