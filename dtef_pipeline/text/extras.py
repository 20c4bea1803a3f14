"""How packages are installed that not everybody needs. The project is on no package index, so its name alone installs nothing."""


def describe_installation(extra: str) -> str:
    """What to type for the packages of an extra of `pyproject.toml`, such as `local`."""
    return f"pip install -e '.[{extra}]' in the checkout of DTEF, or `make setup` there, which installs all"
