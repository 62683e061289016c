"""Owns the dot commands of the prompt: a table of names, what each does, and its one line of help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dlog.engine.saving import save
from dlog.engine.show import change_lines, is_derived
from dlog.errors import DlogError, did_you_mean
from dlog.language.parse import load_file
from dlog.report import change_parts, cost_text, looked_lines, print_stats

if TYPE_CHECKING:
    from dlog.repl.session import Session

EXAMPLES = """\
statements end in `.`, and may go on over several lines; a line is one transaction
  +edge(1, 2), -edge(2, 3).             insert and erase facts
  ^price["tea"] = 3.50.                 replace the value of a function
  reach(x, y) <- edge(x, y).            add a rule, kept up to date from then on; .remove takes it away
  ?- reach(1, y).                       ask
  begin ... commit, or rollback         a transaction of several lines"""


class Command(NamedTuple):
    run: Callable[[Session, str], None]
    argument: str  # as help shows it; "" for none
    help: str


def run_command(session: Session, name: str, argument: str) -> None:
    command = COMMANDS.get(name)
    if command is None:
        known = [f".{n}" for n in COMMANDS]
        raise DlogError(f"unknown command .{name}", help=did_you_mean(f".{name}", known, ".help lists them"))
    if argument and not command.argument:
        raise DlogError(f".{name} takes no argument")
    if not argument and command.argument and not command.argument.startswith("["):
        raise DlogError(f".{name} needs an argument", help=f".{name} {command.argument}")
    command.run(session, argument)


def _help(session: Session, _: str) -> None:
    session.say(EXAMPLES)
    session.say("commands")
    for name, command in COMMANDS.items():
        session.say(f"  {f'.{name} {command.argument}':<18}{command.help}")


def _load(session: Session, argument: str) -> None:
    session.execute(load_file(argument).statements)


def _list(session: Session, _: str) -> None:
    database = session.database
    lines = []
    for name in database.predicates():
        predicate = database.program.predicates[name]
        shape = predicate.show(tuple(f"{c.name}: {c.type}" for c in predicate.columns))
        kind = "derived" if is_derived(database.program, name) else "base"
        lines.append((shape, f"{len(database.store.relations[name]):,}", kind))
    widths = [max((len(line[i]) for line in lines), default=0) for i in range(2)]
    for shape, rows, kind in lines:
        session.say(f"{shape:<{widths[0]}}  {rows:>{widths[1]}}  {kind}")


def _rules(session: Session, _: str) -> None:
    for number, text in enumerate(session.rules, 1):
        session.say(f"{number:>3}  {text}")


def _remove(session: Session, argument: str) -> None:
    rules = session.rules
    if argument.rstrip(".").isdigit():
        number = int(argument.rstrip("."))
        if not 1 <= number <= len(rules):
            raise DlogError(f"there is no rule {number}", help=".rules lists them with their numbers")
        argument = rules[number - 1]
    session.remove(argument if argument.endswith(".") else f"{argument}.")


def _print(session: Session, argument: str) -> None:
    session.show(session.database[argument])


def _stats(session: Session, _: str) -> None:
    if session.last is not None:
        commit = session.last
        parts = ", ".join(change_parts(commit, session.database)) or "no change"
        session.say(f"transaction {commit.version}: {parts}; {cost_text(commit, session.database)}")
        for line in looked_lines(commit, session.database):
            session.say(f"  {line}")
    if session.database.measures.rules:
        print_stats(session.database, session.out)


def _explain(session: Session, argument: str) -> None:
    session.say(session.database.explain(argument or None))


def _why(session: Session, argument: str) -> None:
    session.say(session.database.why(argument))


def _watch(session: Session, argument: str) -> None:
    if argument:
        shown = session.watch(argument)
        session.say(f"{'watching' if shown else 'no longer watching'} {argument}")
    else:
        session.say(f"watching {', '.join(session.watched)}" if session.watched else "watching nothing")


def _pending(session: Session, argument: str) -> None:
    changes = session.pending(argument)
    for change in changes:
        for line in change_lines(session.predicate(change.predicate), change):
            session.say(line)
    if not any(len(change.inserted) + len(change.erased) for change in changes):
        session.say("nothing is pending")


def _save(session: Session, argument: str) -> None:
    save(session.database, Path(argument))


def _quit(session: Session, _: str) -> None:
    session.quits = True


COMMANDS = {
    "help": Command(_help, "", "this help"),
    "load": Command(_load, "FILE", "add the rules and facts of a program, as one transaction"),
    "list": Command(_list, "", "predicates, their types and numbers of rows"),
    "rules": Command(_rules, "", "rules and constraints, with numbers"),
    "remove": Command(_remove, "RULE", "take a rule away: its number in .rules, or its text"),
    "print": Command(_print, "P", "the rows of a predicate"),
    "stats": Command(_stats, "", "what the last transaction cost, and how predicates followed"),
    "explain": Command(_explain, "[P]", "how rules are evaluated, and why"),
    "why": Command(_why, "FACT", "a derivation of a fact, as a tree"),
    "watch": Command(_watch, "[P]", "show the changes of a predicate after each commit; again: no longer"),
    "pending": Command(_pending, "[P]", "what the open transaction has changed of base facts so far"),
    "save": Command(_save, "DIR", "write the program and its base facts into a folder"),
    "quit": Command(_quit, "", "leave; so does Ctrl-D"),
}
