"""How to install optional packages. The project is on no package index, so `pip install NAME` does not find it."""


def describe_installation(extra: str) -> str:
    """Return the command that installs an extra of `pyproject.toml`, such as `local`."""
    return f"pip install -e '.[{extra}]' in the checkout of DTEF, or `make setup` there, which installs all"
