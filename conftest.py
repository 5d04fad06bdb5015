"""Python blocks in the README and the docs are tests; generated examples are the same in every run."""

from hypothesis import settings
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")

pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["*.md"]).pytest()
