"""Reads lines.txt: C++ ;; Python, or C++ ;; ! what the error must name."""
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass
class Line:
    number: int  # in lines.txt
    code: str
    python: str  # or empty
    error: str  # or empty

    def body(self):
        """The line as the body of a lambda."""
        return self.code + ";" if "return" in self.code else f"return {self.code};"


def read():
    for number, text in enumerate((HERE / "lines.txt").read_text(encoding="utf-8").splitlines(), 1):
        if text and not text.startswith("#"):
            code, _, expected = text.partition(" ;; ")
            error = expected[1:].strip() if expected.startswith("!") else ""
            yield Line(number, code.strip(), "" if error else expected.strip(), error)
