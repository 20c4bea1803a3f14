"""A page as a browser's parser sees it: elements, attributes, texts, links. And what holds for the pages of every family."""

from __future__ import annotations

from html.parser import HTMLParser


class ReadPage(HTMLParser):
    """Elements in order, what scripts hold, and the text outside them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.comments: list[str] = []
        self._texts: list[str] = []
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in ("script", "style") else ""
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif not self._inside:
            self._texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def anchors(self) -> set[str]:
        return {given for _, attributes in self.elements if (given := attributes.get("id"))}

    @property
    def links(self) -> list[str]:
        return [given for tag, attributes in self.elements if tag == "a" and (given := attributes.get("href"))]
