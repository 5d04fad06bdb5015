"""The command line: the commands, in the same words as the Python interface."""

from __future__ import annotations

import click

from likewise import __version__
from likewise.cli.attack import attack, effect
from likewise.cli.audit import audit
from likewise.cli.card import card, notice, verify_card
from likewise.cli.compare import compare, tradeoff
from likewise.cli.demo import demo
from likewise.cli.design import design
from likewise.cli.enforce import enforce
from likewise.cli.judge import judge
from likewise.cli.metric import metric
from likewise.cli.report import report
from likewise.cli.review import review_command
from likewise.cli.score import decide, score
from likewise.cli.warm import warm
from likewise.cli.workbench import workbench

_SECTIONS = {
    "Start": (demo, workbench, warm),
    "Metric": (metric, design, judge, tradeoff),
    "Model": (compare, enforce, card),
    "Check": (audit, effect, attack, review_command, report, verify_card),
    "Use": (score, decide, notice),
}


class SectionedGroup(click.Group):
    """A group whose help lists commands by what they are for."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, section by section."""
        widest = max(map(len, self.commands))
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                texts = (one.get_short_help_str(formatter.width - 6 - widest) for one in commands)
                formatter.write_dl([(str(one.name).ljust(widest), t) for one, t in zip(commands, texts, strict=True)])


@click.group(cls=SectionedGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="likewise")
def main() -> None:
    """Individual fairness with guarantees: similar people are treated similarly.

    Design a distance between people, or reveal the one that a model respects, discuss and edit it, train a model that
    provably respects it, and audit every pair.

    Exit codes: 0 done, 1 a gate or a proof failed (audit --max-excess, effect --max-effect, decide --verify,
    verify-card), 2 bad input, 3 a crash, 130 stopped by Ctrl-C.
    """


for _commands in _SECTIONS.values():
    for _command in _commands:
        main.add_command(_command)
