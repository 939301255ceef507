"""HTML read back: its elements, balanced, and the text that a reader sees."""

from html.parser import HTMLParser

VOID = {"br", "hr", "img", "input", "meta", "link"}


class Reader(HTMLParser):
    """Elements as ``(tag, attributes)``, and the text outside of styles."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.elements = []
        self.open = []
        self.text = ""
        self.feed(source)
        self.close()
        assert self.open == [], "an element is not closed"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data

    def count(self, tag):
        return sum(name == tag for name, _ in self.elements)


def read(source):
    return Reader(source)
