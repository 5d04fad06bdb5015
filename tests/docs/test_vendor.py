"""The figures in the text of the page on vendors are those that its code and commands give."""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from likewise.cli.main import main

pytestmark = pytest.mark.slow  # the page itself runs with the other tests
PAGE = (Path(__file__).parents[2] / "docs" / "howto" / "vendor.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The names that the page's code defines, and what each command prints as JSON."""
    names, told = {}, {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("vendor"))
        for kind, block in re.findall(r"^```(python|console)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE):
            if kind == "python":
                exec(block, names)
                continue
            words = shlex.split(block.removeprefix("$ likewise "))
            if words[0] in ("report", "attack"):  # without figures in the text
                continue
            done = CliRunner().invoke(main, [*words, "--json"])
            assert done.exit_code == 0, done.output
            told[words[0]] = json.loads(done.stdout) | told.get(words[0], {})
    return names, told


def test_the_effect(results):
    names, told = results
    found, effect = names["found"], told["effect"]
    assert effect["found"] == pytest.approx(found.found, abs=1e-9)  # the command and the code agree
    lowest, highest = sorted(found.pair["score"])
    woman = found.pair.set_index("sex")["score"]["female"]
    assert woman == lowest
    outside = 1 - names["domain"].holds(names["people"].round({"loan_to_price": 2})).mean()
    (direction,) = found.directions.to_dict("records")
    assert direction["higher"] == "male"
    low, high = (100 * end for end in found.mean_interval)
    for words in (
        f"{100 * found.mean:.1f} points on average, {low:.1f} to {high:.0f} in the population at 95%, and "
        f"{100 * found.on_people['effect'].max():.0f} points for one of them",
        f"Her score is {lowest:.0%}, his {highest:.0%}.",
        f"the answer is **{100 * found.found:.1f} points**",
        f"The {outside:.0%} of the applicants who are outside",
        f"here men, by {100 * direction['mean']:.1f} points on average among these people "
        f"({100 * direction['mean_low']:.1f} to {100 * direction['mean_high']:.1f} in the population)",
    ):
        assert words in PAGE
    assert f"{100 * found.proven:.1f}" == f"{100 * found.found:.1f}"


def test_who_is_favoured_and_by_how_much_groups_differ(results):
    names, told = results
    groups = {row["value"]: row for row in told["audit"]["groups"]}
    men, gap = groups["male"], names["gaps"].gaps.iloc[0]
    for words in (
        f"Here men have the better score in {men['share']:.0%} of {men['n_pairs']:,} pairs.",
        f"of these pairs {men['n_alike']} exceed the distance and differ in sex, and men have the better score in "
        f"{men['share_alike']:.0%} of them, with p = {men['p_value']:.2f}",
        f"if sex were drawn by lot, here {100 * gap['shuffled']:.0f} points of {100 * gap['allowed']:.0f}, so that",
        f"The gap here is {100 * abs(gap['gap']):.0f} points, "
        f"and the worst case of step 2 is {100 * names['found'].found:.0f}.",
    ):
        assert words in PAGE


def test_the_files_that_are_reviewed(results):
    review = results[1]["review"]
    assert f"here {review['n_files']} of {review['n_denied']}, those with most comparators first" in PAGE
