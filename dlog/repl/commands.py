"""Owns the dot commands of the prompt: a table of names, what each does, and its one line of help."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dlog.durable.past import Entry
from dlog.engine.commit.printed_facts import change_lines, in_order, is_derived
from dlog.engine.saving import PROGRAM, save
from dlog.errors import DlogError, did_you_mean
from dlog.language.parse import load_file
from dlog.language.source import read_source
from dlog.report import cost_text, oracle_lines, print_stats, signed_counts

if TYPE_CHECKING:
    from dlog.engine.database import Database
    from dlog.repl.session import Session

EXAMPLES = """\
statements end in `.`, and may continue over several lines; a line is one transaction
  +edge(1, 2), -edge(2, 3).             insert and erase facts
  ^price["tea"] = 3.50.                 replace the value of a function
  reach(x, y) <- edge(x, y).            add a rule, maintained from then on; .remove removes it
  ?- reach(1, y).                       ask
  .materialize reach on_read            store no rows until they are read; also changes, always
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
        session.say(f"  {f'.{name} {command.argument}':<23}{command.help}")


def _load(session: Session, argument: str) -> None:
    """A program; or a folder that `.save` wrote, whose program finds its facts there."""
    path, database = Path(argument), session.database
    if not path.is_dir():
        session.execute(load_file(argument).statements, to_stay=True)
        return
    facts = database.facts_folder
    database.facts_folder = path
    try:
        session.execute(load_file(str(path / PROGRAM)).statements, to_stay=True)
    finally:
        database.facts_folder = facts


def _list(session: Session, _: str) -> None:
    database = session.database
    lines = []
    for name in database.predicates():
        predicate = database.program.predicates[name]
        shape = predicate.show(tuple(f"{c.name}: {c.type}" for c in predicate.columns))
        kind = "derived" if is_derived(database.program, name) else "base"
        stored = name in database.pending or name not in database.unevaluated
        rows = f"{_size(database, name):,}" if stored else "not stored"
        lines.append((shape, rows, kind))
    widths = [max((len(line[i]) for line in lines), default=0) for i in range(2)]
    for shape, rows, kind in lines:
        session.say(f"{shape:<{widths[0]}}  {rows:>{widths[1]}}  {kind}")


def _size(database: Database, name: str) -> int:
    """Rows of a predicate, as far as it is evaluated."""
    if name in database.program.equivalences and not database.pending:
        return len(database.relation(name))
    return len(database.store.relations[name])


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


def _addblock(session: Session, argument: str) -> None:
    name, _, path = argument.partition(" ")
    path = path.strip()
    if not path:
        raise DlogError(".addblock needs a name and a file", help=".addblock NAME FILE")
    text = read_source(path).text
    session.change_block(lambda transaction: transaction.add_block(name, text, path))


def _removeblock(session: Session, argument: str) -> None:
    session.change_block(lambda transaction: transaction.remove_block(argument))


def _blocks(session: Session, _: str) -> None:
    for name, text in session.blocks.items():
        session.say(name)
        for line in text.splitlines():
            session.say(f"    {line}")


def _print(session: Session, argument: str) -> None:
    session.show(session.database[argument])


def _stats(session: Session, _: str) -> None:
    if session.last is not None:
        commit = session.last
        costs = cost_text(commit, session.database)
        session.say(f"transaction {commit.version}: {session.last_changes}; {costs}")
        for line in oracle_lines(commit, session.database):
            session.say(f"  {line}")
    if session.database.measures.rules:
        print_stats(session.database, session.out)


def _explain(session: Session, argument: str) -> None:
    words = argument.split()
    names = [word for word in words if word != "--all"]
    session.say(session.database.explain(" ".join(names) or None, all="--all" in words))


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


def _branch(session: Session, argument: str) -> None:
    database = session.database
    if argument:
        database.branch(argument)
        session.say(f"branch {argument} at version {database.version}")
        return
    for name, version in database.branches().items():
        session.say(f"{'*' if name == database.current_branch else ' '} {name} at version {version}")


def _checkout(session: Session, argument: str) -> None:
    session.checkout(argument)
    session.say(f"on {argument} at version {session.database.version}")


def _merge(session: Session, argument: str) -> None:
    session.merge(argument)


def _drop(session: Session, argument: str) -> None:
    session.database.drop_branch(argument)
    session.say(f"dropped {argument}")


def _diff(session: Session, argument: str) -> None:
    """From the first to the second; with one argument, from it to the current one."""
    names = argument.split()
    if len(names) > 2:
        raise DlogError(".diff takes two branches or versions", help=".diff A B")
    database = session.database
    changes = database.diff(names[0], names[1] if len(names) == 2 else database.current_branch)
    known = in_order(database.program, changes)
    for name in [*known, *(name for name in changes if name not in known)]:
        for line in change_lines(changes.predicate(name), changes[name]):
            session.say(line)
    if not changes:
        session.say("no difference")


def _history(session: Session, _: str) -> None:
    entries = session.database.history()
    for entry in entries:
        session.say(_entry_line(entry))
    if not entries:
        session.say("no transaction since the last checkpoint")


def _entry_line(entry: Entry) -> str:
    """`3 main 2026-11-16 16:20:01: +1 edge, -2 +1 name`"""
    parts = [f"{signed_counts(*counts)} {name}" for name, counts in entry.changes.items()]
    parts += ["program changed"] if entry.program else []
    parts += [f"merge of version {entry.merged}"] if entry.merged is not None else []
    parts += [f"batch {entry.batch_id}"] if entry.batch_id is not None else []
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.time))
    return f"{entry.version} {entry.branch} {when}: {', '.join(parts) or 'no change'}"


def _checkpoint(session: Session, _: str) -> None:
    session.database.checkpoint()


def _quit(session: Session, _: str) -> None:
    session.quits = True


COMMANDS = {
    "help": Command(_help, "", "this help"),
    "load": Command(_load, "FILE", "add a program, or a folder that .save wrote, as one transaction"),
    "list": Command(_list, "", "predicates, their types and numbers of rows"),
    "rules": Command(_rules, "", "rules and constraints, with numbers"),
    "remove": Command(_remove, "RULE", "remove a rule: its number in .rules, or its text"),
    "addblock": Command(_addblock, "NAME FILE", "add the statements of a file as a block"),
    "removeblock": Command(_removeblock, "NAME", "remove a block with its statements"),
    "blocks": Command(_blocks, "", "the blocks with their statements"),
    "print": Command(_print, "P", "the rows of a predicate"),
    "stats": Command(_stats, "", "what the last transaction cost, and how predicates were maintained"),
    "explain": Command(_explain, "[--all] [P]", "how rules are evaluated and maintained, and why"),
    "why": Command(_why, "FACT", "a derivation of a fact, as a tree"),
    "watch": Command(_watch, "[P]", "show the changes of a predicate after each commit; again: stop"),
    "pending": Command(_pending, "[P]", "changes of base facts in the open transaction so far"),
    "save": Command(_save, "DIR", "write the program and its base facts into a folder"),
    "branch": Command(_branch, "[NAME]", "create a branch here; without a name: list all branches"),
    "checkout": Command(_checkout, "NAME", "switch to a branch"),
    "diff": Command(
        _diff, "A B", "differences from A to B, which are branches or versions; B defaults to the current one"
    ),
    "merge": Command(_merge, "NAME", "apply another branch's changes of base facts"),
    "drop": Command(_drop, "NAME", "delete a branch"),
    "history": Command(_history, "", "the transactions since the last checkpoint"),
    "checkpoint": Command(_checkpoint, "", "rewrite the database, without its history"),
    "quit": Command(_quit, "", "leave; so does Ctrl-D"),
}
