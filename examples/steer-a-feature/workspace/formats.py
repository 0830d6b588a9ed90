"""How a list of headings is printed."""


def plain(headings: list[str]) -> str:
    """One heading a line.

    >>> print(plain(["One", "Two"]))
    One
    Two
    """
    return "\n".join(headings)
