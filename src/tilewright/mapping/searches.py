"""The searches by name; each is imported when it is asked for."""

from typing import Literal

from tilewright.mapping.network import Search

SearchName = Literal["loma", "anneal", "complete"]


def search_named(name: SearchName) -> Search:
    """The search function of a name."""
    match name:
        case "loma":
            from tilewright.mapping.search import loma

            return loma
        case "anneal":
            from tilewright.mapping.anneal import anneal

            return anneal
        case "complete":
            from tilewright.mapping.complete.search import complete

            return complete
