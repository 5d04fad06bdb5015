"""Questions about pairs."""

from committee import applicants, problem_of, session_of
from likewise.workbench.engine import Engine
from likewise.workbench.judging import Judging


def test_two_pairs_to_compare_differ_in_other_columns_and_are_not_asked_again(tmp_path):
    engine = Engine(problem_of(*applicants(200)))
    session = session_of(engine, tmp_path / "people.likewise.json", locked=["race"])
    judging, seen = Judging(engine, session), set()
    for _ in range(3):
        question = judging.question("Ann", compare=True)
        one, other = ({line["column"] for line in question[side]} for side in ("differences", "others"))
        assert one != other
        assert "race" not in one | other
        pairs = {(question["a"], question["b"]), (question["c"], question["d"])}
        assert not pairs & seen
        seen |= pairs
        row = {"kind": "closer", **{side: question[side] for side in "abcd"}}
        session.act("answer", "Ann", rows=[row])
    # Somebody else is asked the same from the beginning.
    assert judging.question("Bob", compare=True)["a"] in {a for a, _ in seen}
