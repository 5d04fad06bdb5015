"""The example tells its story to the end, and its figures are those of the story."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parent.parent / "examples" / "mortgages.py"


def test_the_example_runs_and_tells_its_story():
    told = subprocess.run([sys.executable, EXAMPLE], check=True, capture_output=True, text=True).stdout
    headings = re.findall(r"^\d\. ([A-Z ]+)", told, flags=re.MULTILINE)
    assert [heading.split()[0] for heading in headings] == [
        *("REVEAL", "REVEAL", "EDIT", "AUDIT", "ENFORCE", "AUDIT", "COST"),
    ]
    before, after = told.split("5. ENFORCE")
    assert re.search(r"[1-9][\d,]* of 179,700 pairs violate the metric", before)
    assert "None of 179,700 pairs exceeds the metric" in after
    assert "bitwise identical scores with every value of race and sex" in after
