"""Options shared by commands, their output, and their exit codes."""

from __future__ import annotations

import codecs
import functools
import gzip
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from inspect import cleandoc
from pathlib import Path
from textwrap import TextWrapper, wrap
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from likewise.exceptions import InvalidInputError, LikewiseError

if TYPE_CHECKING:
    import pandas as pd

    from likewise.pairs.model_outputs import OutputLabels

FILE = click.Path(path_type=Path, dir_okay=False, allow_dash=True)
TABLE = click.Path(path_type=Path, allow_dash=True)
"""A file, or a directory of Parquet files."""
MODELS = ("logistic", "forest", "boosting", "network")
METHODS = ("additive", "network", "projection", "smoothing")
TASKS = ("classification", "regression")

Note = Callable[[str], None]
"""Called with one line for the user of a command."""

force = click.option("--force", is_flag=True, help="Overwrite the output file; never an input file.")
target = click.option("--target", required=True, help="Column with the outcome to predict.")
task = click.option("--task", type=click.Choice(TASKS), help="Needed if the target could be either.")

_range = functools.partial(click.option, "--range", "output_range", type=float, nargs=2)
output_range = _range(help="Lowest and highest outcome of a regression; by default those in the metric file.")
score_range = _range(help="Lowest and highest score, if not probabilities; by default those in the metric file.")
id_column = click.option("--id", "id_column", help="Column that names people: left out, and used in error messages.")
drop = click.option("--drop", multiple=True, help="Column to leave out; may be given several times.")
categorical = click.option(
    "--categorical",
    multiple=True,
    help="Numeric column that holds codes, or one of many categories that would be left out; "
    "may be given several times.",
)
orders = click.option(
    "--order",
    "orders",
    multiple=True,
    metavar="COLUMN=FIRST,...,LAST",
    callback=lambda _context, _option, given: dict(_lists(given, "grade=low,middle,high")),
    help="Ordered categories of a column, such as grade=low,middle,high; may be given several times.",
)
groups = click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="COLUMN=ONE,...,OTHER",
    callback=lambda _context, _option, given: _groups(given),
    help="Categories of a column that are near to each other, such as job=clerk,teacher; once per group.",
)
rises = click.option(
    "--rises",
    multiple=True,
    help="Column of numbers with which the probability of the favourable class, or the predicted number, may only "
    "rise; may be given several times.",
)
falls = click.option("--falls", multiple=True, help="The same for one with which it may only fall.")
weights = click.option("--weights", help="Column with how much each person counts: all of it times 5 changes nothing.")
special = click.option(
    "--special",
    multiple=True,
    metavar="COLUMN=CODE,...",
    callback=lambda _context, _option, given: _codes(given),
    help="Codes in a column of numbers that are no numbers, such as score=-99,-98 for no file: learned from as blanks, "
    "with the weight of a blank; may be given several times.",
)
favourable = click.option(
    "--favourable",
    metavar="CLASS|high|low",
    help="What is better for a person: a class, or the high or low end of the score. By default what the metric file "
    "or the model says, or words such as approved and denied.",
)
cluster = click.option("--cluster", help="Address of a Dask scheduler, such as tcp://127.0.0.1:8786, or local.")


def no_note(text: str) -> None:
    """Ignore the note."""


def _lists(given: Sequence[str], example: str) -> Iterator[tuple[str, list[str]]]:
    """Columns with what an option lists for each."""
    for each in given:
        name, sign, listed = each.partition("=")
        if not sign or not name.strip():
            raise click.BadParameter(f"must be like {example}; got {each!r}.")
        yield name.strip(), [word.strip() for word in listed.split(",")]


def _codes(given: Sequence[str]) -> dict[str, list[float]]:
    """Special codes by column."""
    try:
        return {name: list(map(float, codes)) for name, codes in _lists(given, "score=-99,-98")}
    except ValueError:
        raise click.BadParameter(f"must be like score=-99,-98; got {', '.join(given)!r}.") from None


def _groups(given: Sequence[str]) -> dict[str, list[list[str]]]:
    """Groups by column."""
    found: dict[str, list[list[str]]] = {}
    for name, listed in _lists(given, "job=clerk,teacher"):
        found.setdefault(name, []).append(listed)
    return found


@dataclass(frozen=True)
class Dialect:
    """Format of a CSV file.

    Attributes
    ----------
    delimiter : str
        Between columns; "tab" or "\\t" for a tab.
    encoding : str
    decimal : {".", ","}
        The other one may group thousands.
    blank : tuple of str
        Text that stands for no value, besides that which always does.
    """

    delimiter: str = ","
    encoding: str = "utf-8"
    decimal: str = "."
    blank: tuple[str, ...] = ()

    @classmethod
    def found(cls, path: Any, note: Note, given: dict[str, Any]) -> Dialect:
        """The dialect that is given; what is not, as the first lines of a file show it."""
        chosen = {name: value for name, value in given.items() if value is not None}
        if isinstance(chosen.get("blank"), str):
            chosen["blank"] = tuple(word.strip() for word in chosen["blank"].split(","))
        lines = _first_lines(path, chosen.get("encoding", "utf-8"))
        head = re.sub(r'"[^"]*"', "", lines[0]) if lines else ""
        sign = next((sign for sign in ";\t|" if sign in head and "," not in head), ",")
        dialect = cls(**{"delimiter": sign, **chosen})
        if "decimal" not in chosen and dialect.delimiter != ",":
            cells = [cell.strip('" ') for line in lines[1:] for cell in line.split(dialect.delimiter)]
            comma, point = (rf"[-+]?\d[\d{a}]*[{b}](?:\d{{1,2}}|\d{{4,}})%?" for a, b in ((".", ","), (",", ".")))
            said = [any(re.fullmatch(pattern, cell) for cell in cells) for pattern in (comma, point)]
            dialect = replace(dialect, decimal=",") if said == [True, False] else dialect
        if (dialect.delimiter, dialect.decimal) != (chosen.get("delimiter", ","), chosen.get("decimal", ".")):
            between = {"\t": "tabs"}.get(dialect.delimiter, repr(dialect.delimiter))
            note(f"Read with {between} between columns and {dialect.decimal!r} as the decimal sign.")
        return dialect

    def __post_init__(self) -> None:
        if self.delimiter in ("\\t", "tab"):
            object.__setattr__(self, "delimiter", "\t")
        if len(self.delimiter) != 1:
            raise InvalidInputError(f"--delimiter must be one character, or 'tab'; got {self.delimiter!r}.")
        if self.decimal not in (".", ","):
            raise InvalidInputError(f"--decimal must be '.' or ','; got {self.decimal!r}.")
        if self.decimal == self.delimiter:
            raise InvalidInputError(f"--decimal {self.decimal!r} needs another --delimiter, such as ';'.")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise InvalidInputError(f"--encoding {self.encoding!r} is unknown; try utf-8, latin-1 or cp1252.") from None

    @property
    def options(self) -> dict[str, Any]:
        """For `pandas.read_csv`."""
        from pandas import __version__

        # A column is read as a whole: in parts, it could be numbers in one and text in the next.
        options = {"sep": self.delimiter, "encoding": self.encoding, "decimal": self.decimal, "low_memory": False}
        if tuple(map(int, __version__.split(".")[:2])) < (3, 1):  # reads decimals to all but the last digit by default
            options["float_precision"] = "round_trip"
        return options

    @property
    def plain_number(self) -> str:
        """Pattern of a number."""
        point = re.escape(self.decimal)
        return rf"[-+]?(?:\d+(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?"

    @property
    def grouped_number(self) -> str:
        """Pattern of a number whose thousands may be grouped, with or without a currency sign."""
        group = re.escape("," if self.decimal == "." else ".")
        # No group of thousands begins with 0: "0,125" is an eighth in another notation.
        return rf"[-+]?[$€£]?(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d+)(?:{re.escape(self.decimal)}\d+)?"


def _first_lines(path: Any, encoding: str) -> list[str]:
    """Some lines of a CSV file; none of others, or of standard input, which is read once."""
    name = str(path).lower()
    if not name.endswith((".csv", ".csv.gz")) or not Path(path).is_file():
        return []
    try:
        with (gzip.open if name.endswith(".gz") else open)(path, "rt", encoding=encoding, errors="replace") as file:
            return [line.rstrip("\r\n") for line in itertools.islice(file, 200)]
    except (OSError, LookupError):  # said where the table is read
        return []


_READING = "id_column categorical drop categories delimiter encoding decimal blank"
_LAST = {"How the table is read": _READING.split(), "Output": ["out", "force", "as_json", "help"]}
"""Options that stand at the end of a command's help."""


class SectionedCommand(click.Command):
    """A command whose help begins with what is required, and ends with how files are read and written."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does, what it requires, and then what else there is to say."""
        first, _, rest = cleandoc(self.help or "").partition("\n\n")
        for text in (first, rest):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(text)
            if text is first:
                self._write_options(ctx, formatter, ["Required"])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the other options, section by section."""
        self._write_options(ctx, formatter, ["Options", *_LAST])

    def _write_options(self, ctx: click.Context, formatter: click.HelpFormatter, titles: Sequence[str]) -> None:
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Required", "Options", *_LAST)}
        for parameter in self.get_params(ctx):
            ends = (title for title, names in _LAST.items() if parameter.name in names)
            title = "Required" if parameter.required else next(ends, "Options")
            record = None if isinstance(parameter, click.Argument) else parameter.get_help_record(ctx)
            sections[title] += [] if record is None else [record]
        for title in titles:
            if sections[title]:
                with formatter.section(title):
                    formatter.write_dl(sections[title])


new_command = functools.partial(click.command, cls=SectionedCommand)


def as_one(kind: type[Any], name: str, *options: Callable[..., Any]) -> Callable[..., Any]:
    """Add options, and pass them to the function as one `kind` by this name: its fields are what options are called.

    Options may themselves be added by another `as_one`, whose object is then a field.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **given: Any) -> Any:
            chosen = kind(**{field.name: given.pop(field.name) for field in fields(kind) if field.name in given})
            return function(*args, **{name: chosen}, **given)

        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return decorate


def reads_table(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add how a CSV file is written, passed to the function as one `dialect`; what is not said is found in the file."""

    @functools.wraps(function)
    def wrapped(*args: Any, **given: Any) -> Any:
        path = given.get("table") or next(reversed(given.get("paths") or ()), None)
        written = {each.name: given.pop(each.name) for each in fields(Dialect)}
        return function(*args, dialect=Dialect.found(path, args[0].note if args else no_note, written), **given)

    found = "as in the file"
    for option in (
        click.option("--blank", help="Words that stand for no value, separated by commas, such as 'n.a.,-,unknown'."),
        click.option("--decimal", show_default=found, help="Decimal sign of a CSV file."),
        click.option("--encoding", default="utf-8", show_default=True, help="Encoding of a CSV file, such as latin-1."),
        click.option("--delimiter", show_default=found, help="Column separator of a CSV file, or 'tab'."),
    ):
        wrapped = option(wrapped)
    return wrapped


@dataclass(frozen=True)
class Destination:
    """The file that a command writes, None for none, and whether it may replace one."""

    out: Path | None
    force: bool

    def check(self, *inputs: Any) -> None:
        """Raise if the file is one of the inputs, exists without --force, or cannot be written."""
        if self.out is not None:
            from likewise.io import check_output_path

            check_output_path(self.out, *inputs, force=self.force)

    @property
    def path(self) -> Path:
        """The file, where a command always writes one."""
        assert self.out is not None
        return self.out


def writes(text: str | None = None, default: str | None = None, *, required: bool = False) -> Callable[..., Any]:
    """Add --out and --force, passed to the function as one `to`."""
    given: dict[str, Any] = {"help": text, "required": required}
    given |= {} if default is None else {"default": Path(default), "show_default": True}
    return as_one(Destination, "to", click.option("--out", type=FILE, **given), force)


@dataclass(frozen=True)
class Band:
    """A soft threshold: the probability in the middle of a band, its width, and the class whose probability it is."""

    threshold: float | None
    width: float | None
    favourable: str | None


def has_band(
    when: str = "", threshold: str = "Probability at the middle of the band; needs --width."
) -> Callable[..., Any]:
    """Add --threshold, --width and --favourable, passed to the function as one `band`; `when` they apply."""
    return as_one(
        Band,
        "band",
        click.option("--threshold", type=float, help=f"{when}{threshold}"),
        click.option(
            "--width",
            type=float,
            help=f"{when}Width of the band from which the cut-off is drawn: people at distance D are decided "
            "differently with probability at most D / width.",
        ),
        click.option(
            "--favourable",
            help="Class that is better for a person; by default what metric file or model say, or a known word.",
        ),
    )


@dataclass(frozen=True)
class Batching:
    """How a table is scored in batches, as keywords of `score_file`."""

    id_column: str | None
    keep: tuple[str, ...]
    batch_rows: int
    jobs: int
    cluster: str | None
    dialect: Dialect


def scores_in_batches(results: str) -> Callable[..., Any]:
    """Add options on scoring a table in batches, passed to the function as one `batching`."""
    return as_one(
        Batching,
        "batching",
        click.option("--id", "id_column", help=f"Column that names people, to repeat beside the {results}."),
        click.option("--keep", multiple=True, help=f"Another column of the table to repeat beside the {results}."),
        click.option(
            "--batch", "batch_rows", type=click.IntRange(1), default=20_000, show_default=True, help="People at a time."
        ),
        click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes on this machine."),
        cluster,
        reads_table,
    )


def facts_of(found: Any, *names: str) -> dict[str, Any]:
    """Attributes of a result, for the JSON document."""
    return {name: getattr(found, name) for name in names}


def is_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


PAIR = ("one", "other")
"""What two people are called who are printed side by side."""
BAD_INPUT, CRASH, STOPPED = 2, 3, 130
"""Exit codes; 1 is a gate that failed."""


class Output:
    """Output of a command: text, or one JSON document.

    Results go to standard output, notes to standard error. If scores are written to standard output, results go to
    standard error too (`to_stderr`).
    """

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.to_stderr = False
        self.facts: dict[str, Any] = {}
        self.notes: list[str] = []

    def __call__(self, text: str, **facts: Any) -> None:
        """Print text, or keep the same facts for the JSON document."""
        self.facts |= facts
        if not self.as_json:
            click.echo(_wrapped(text), err=self.to_stderr)

    def note(self, text: str) -> None:
        """Print a note; each once."""
        if text in self.notes:
            return
        self.notes.append(text)
        if not self.as_json:
            click.echo(_wrapped(f"Note: {text}"), err=True)

    def busy(self, doing: str) -> AbstractContextManager[Any]:
        """Show a spinner."""
        from likewise._progress import progress_bar

        return progress_bar(doing, None, show=not self.as_json)

    def table(self, frame: pd.DataFrame, name: str, shown: pd.DataFrame | None = None) -> None:
        """Print a table, or what of it is shown."""
        self.facts[name] = json.loads(frame.to_json(orient="records"))
        if not self.as_json:
            click.echo(_in_width(frame if shown is None else shown, _width()), err=self.to_stderr)

    def csv(self, frame: pd.DataFrame, path: Path, name: str, *, index: bool = False) -> None:
        """Write a table to a file, whose path is the fact `name`."""
        from likewise._writing import atomic_write, write_csv

        with atomic_write(path) as temporary:
            write_csv(frame, temporary, index=index)
        self(f"\nWrote {path}", **{name: str(path)})

    def pair(self, people: pd.DataFrame | None, whole: bool = True) -> None:
        """Print two people side by side, if there are any; else than `whole`, in what they differ."""
        if people is None:
            self.facts["pair"] = None
            return
        rows = people.astype(object).T.reset_index().set_axis(["column", *PAIR], axis=1)
        self.facts["pair"] = json.loads(rows.to_json(orient="records"))
        # To ten digits: the two may differ in little.
        texts = rows.map(lambda value: f"{value:.10g}" if isinstance(value, float) else str(value))
        shown = texts if whole else texts[texts[PAIR[0]] != texts[PAIR[1]]]
        self(_in_width(shown, None if self.as_json else _width()))
        if len(shown) < len(texts):
            self(f"In the other {len(texts) - len(shown)} columns they are equal: -v prints these.")

    def unit(self, labels: OutputLabels) -> None:
        """Say what differences are in, unless they are points of a probability, and whose probability scores are."""
        self.facts |= {"output_range": labels.limits, "are_probabilities": labels.are_probabilities}
        if labels.statement:
            self(f"\n{labels.statement}")

    def finish(self, *try_next: str) -> None:
        """Print the JSON document, or what to run next."""
        if self.as_json:
            click.echo(json.dumps(self.facts | ({"notes": self.notes} if self.notes else {}), indent=2))
        elif try_next:
            click.echo("\nNext: " + "\n      ".join(map(_continued, try_next)), err=self.to_stderr)


def _width() -> int | None:
    """Columns of the terminal; None if there is none, as for a file."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else None


def _wrapped(text: str) -> str:
    """Sentences in lines of the terminal's width, so that it breaks no word; tables and commands stay as they are."""
    width = _width()
    if width is None:
        return text
    fill = TextWrapper(width, break_long_words=False, break_on_hyphens=False).fill
    lines = text.split("\n")
    kept = re.compile(r"\s*likewise |.*\S  ")
    return "\n".join(line if kept.match(line) else fill(line) for line in lines)


def _continued(command: str) -> str:
    """A command to copy: in lines of the terminal's width, broken between words as a shell takes it."""
    width, lines = _width(), [""]
    if width is None or len(command) <= width - 6 or not command.startswith("likewise "):
        return command
    for word in re.findall(r"(?:'[^']*'|\S)+", command):
        if lines[-1] and len(lines[-1]) + len(word) > width - 9:
            lines.append("   ")
        lines[-1] += f" {word}" if lines[-1] else word
    return " \\\n      ".join(lines)


def _in_width(frame: pd.DataFrame, width: int | None) -> str:
    """A table in lines of this width: long texts take several, and what finds no room stands below the first column.

    Examples
    --------
    >>> import pandas as pd
    >>> values = ["18 to 75", "clerk, driver, teacher, nurse, blank"]
    >>> table = pd.DataFrame({"column": ["age", "job"], "weight": [0.1, 0.2], "can hold": values})
    >>> print(_in_width(table, 40))
    column weight can hold
       age    0.1 18 to 75
       job    0.2 clerk, driver, teacher,
                  nurse, blank
    >>> print(_in_width(table.assign(place=["north", "south"]).drop(columns="can hold"), 15))
    column weight
       age    0.1
       job    0.2
    <BLANKLINE>
    column place
       age north
       job south
    """
    text = frame.to_string(index=False)
    if width is None or len(text.partition("\n")[0]) <= width:
        return text
    first, *others = [frame.iloc[:, [i]].to_string(index=False).split("\n") for i in range(frame.shape[1])]
    blocks, used = [[[[cell] for cell in first]]], len(first[0])
    for column in others:
        longest = max((len(word) for cell in column for word in cell.split()), default=0)
        if width - used <= max(longest, min(len(column[0]), 20)):
            blocks.append([[[cell] for cell in first]])
            used = len(first[0])
        cells = [wrap(cell.strip(), max(width - used - 1, 10), break_long_words=False) or [""] for cell in column]
        size = max(len(line) for cell in cells for line in cell)
        is_wrapped = any(len(cell) > 1 for cell in cells)
        blocks[-1].append([[line.ljust(size) if is_wrapped else line.rjust(size) for line in cell] for cell in cells])
        used += 1 + size
    texts = []
    for block in blocks:
        sizes = [len(column[0][0]) for column in block]
        lines = [line for row in zip(*block, strict=True) for line in itertools.zip_longest(*row, fillvalue="")]
        texts.append("\n".join(" ".join(map(str.ljust, line, sizes)).rstrip() for line in lines))
    return "\n\n".join(texts)


_CARRIED = ("--task", "--delimiter", "--encoding", "--decimal", "--blank", "--categorical", "--id", "--range", "--keep")
"""Options on how to read a table, which the suggested next command needs too."""


def rows_are(id_column: str | None) -> str:
    """How people are named in a table: by the ids, or by rows, counted from 1 as in messages."""
    return "row 1 is the first person of the table" if id_column is None else f"by {id_column}"


def name_people(rows: pd.Series[Any], ids: Any) -> Any:
    """Ids of people at these positions, or their row numbers, as in `rows_are`."""
    return rows.to_numpy() + 1 if ids is None else ids[rows.to_numpy()]


def next_command(name: str, *words: object) -> str:
    """A command to run next on the same table, quoted for a shell.

    Options on how to read the table are repeated from the present command, if the next one has them.
    """
    texts = [str(word) for word in words]
    return shlex.join(["likewise", name, *texts, *_carried(name, texts)])


def _carried(name: str, words: Sequence[str]) -> list[str]:
    context = click.get_current_context(silent=True)
    if context is None:  # the workbench runs parts of commands
        return []
    known: Any = context.find_root().command
    following: Any = getattr(known, "commands", {}).get(name)
    if hasattr(following, "commands"):  # `metric TABLE`, or `metric scale`
        following = following.commands.get(next(iter(words), None), following.commands[following.default])
    options = {flag for option in (following.params if following else []) for flag in option.opts}
    carried = [option for option in context.command.params if options.intersection(option.opts, _CARRIED)]
    return [word for option in carried for word in _given(context, option)]


def command_as_run(*more: object) -> str:
    """The present command with what was given to it but for where it writes, and `more`, quoted for a shell."""
    context = click.get_current_context()
    parameters = sorted(context.command.params, key=lambda parameter: isinstance(parameter, click.Option))
    kept = [parameter for parameter in parameters if parameter.name not in ("out", "force", "as_json")]
    words = [word for parameter in kept for word in _given(context, parameter)]
    group: Any = None if context.parent is None else context.parent.command
    name = group.name if getattr(group, "default", None) == context.command.name else context.command.name
    return shlex.join(["likewise", str(name), *words, *map(str, more)])


def _given(context: click.Context, parameter: click.Parameter) -> list[str]:
    """The words of one option or argument, if it was given."""
    if context.get_parameter_source(str(parameter.name)) is not ParameterSource.COMMANDLINE:
        return []
    value: Any = context.params[str(parameter.name)]
    flag = parameter.opts[0]
    if isinstance(parameter, click.Argument):
        return [str(one) for one in (value if isinstance(value, tuple) else [value])]
    if isinstance(value, bool):
        return [flag] if value else []
    if isinstance(value, dict):  # categories, groups of them, or special codes, by column
        listed = [(name, part) for name, parts in value.items() for part in (parts if _is_nested(parts) else [parts])]
        value = [
            f"{name}={','.join(f'{one:g}' if isinstance(one, float) else one for one in part)}" for name, part in listed
        ]
    found = []
    for one in value if getattr(parameter, "multiple", False) else [value]:
        words = one if isinstance(one, tuple) else (one,)
        found += [flag, *(str(word).removesuffix(".0") if isinstance(word, float) else str(word) for word in words)]
    return found


def _is_nested(parts: Sequence[Any]) -> bool:
    return all(isinstance(part, list) for part in parts)


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json, turn warnings into notes, and errors into one line and an exit code."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
    @functools.wraps(function)
    def wrapped(as_json: bool, **options: Any) -> Any:
        echo = Output(as_json)
        try:
            with _warnings_as_notes(echo):
                return function(echo, **options)
        except KeyboardInterrupt as interrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one must not interrupt the exit
            click.echo(" ".join(["Stopped. No file was left incomplete.", *_words(interrupt)]), err=True)
            sys.exit(STOPPED)
        except BrokenPipeError:
            raise  # the reader of standard output has left: click exits quietly
        except Exception as error:
            if os.environ.get("LIKEWISE_DEBUG"):
                raise
            text, is_input = _for_commands(error), isinstance(error, (LikewiseError, ValueError, OSError))
            crash = f"{type(error).__name__}: {text[:300]} Set LIKEWISE_DEBUG=1 and run it again to see where."
            click.echo(f"Error: {text}" if is_input else f"Internal error: {crash}", err=True)
            sys.exit(BAD_INPUT if is_input else CRASH)

    return wrapped


def _for_commands(message: Warning | Exception | str) -> str:
    """The message of an error or warning at the command line, in one line."""
    if isinstance(message, OSError) and message.filename:
        return f"Cannot read {message.filename}: {message.strerror}."
    return " ".join((getattr(message, "command_text", None) or str(message)).split())


def _words(interrupt: BaseException | None) -> list[str]:
    """The message of the first interrupt, even after a second Ctrl-C."""
    while interrupt is not None and not (isinstance(interrupt, KeyboardInterrupt) and interrupt.args):
        interrupt = interrupt.__context__
    return list(map(str, interrupt.args)) if interrupt else []


@contextmanager
def _warnings_as_notes(echo: Output) -> Iterator[None]:
    """Print warnings as notes, without file names."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *place, **more: echo.note(_for_commands(message))
        yield


def echo_coverage(echo: Output, coverage: Any) -> None:
    """Print how many pairs a metric constrains, and what to do if these are few."""
    echo(f"\n{coverage.statement}", bound_share=coverage.bound_share, nearest=coverage.nearest)
    if coverage.is_little:
        echo.note(
            f"The metric does not constrain {1 - coverage.bound_share:.1%} of the pairs, where D >= 1. Smaller weights "
            "constrain more of them: likewise metric scale METRIC --by FACTOR, or likewise metric --normalize."
        )


def echo_unseen(echo: Output, unseen: Any) -> None:
    """Print whether costs are measured on people whom the metric has not seen, or that they are understated.

    Where the metric was made again without them, the result says so.
    """
    if unseen.apart is not None:
        echo(
            f"\nMeasured on people whom the metric has not seen: {len(unseen.apart):,} kept apart by likewise design.",
            metric_has_not_seen=len(unseen.apart),
        )
    elif unseen.caveat:
        echo(f"\n{unseen.caveat}", cost_understated=unseen.caveat)
    echo.facts["metric_made_again"] = unseen.made_by is not None
