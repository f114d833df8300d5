"""Pictures as SVG text: boxes, cells, arrows and words, as draw.py needs them.

A picture has a white background of its own, so that it can be read on a dark page too. y grows
downwards. The same calls give the same text, to the byte.
"""

from html import escape

INK, GREY, WHITE = "#1f2328", "#e4e7eb", "#ffffff"
BLUE, ORANGE, GREEN, RED = "#cfe3fb", "#ffdcb2", "#cdebc9", "#ffc9c4"
FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
MONO = "Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def number(x):
    """Return a coordinate in few digits."""
    return f"{round(x, 1):g}"


class Picture:
    """A picture of a fixed size; every method draws over what is there."""

    def __init__(self, width, height, title):
        self.width, self.height = width, height
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" font-family="{FONT}">',
            f"<title>{escape(title)}</title>",
            '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" '
            f'orient="auto"><path d="M0 0 L9 4 L0 8 z" fill="{INK}"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="{WHITE}"/>',
        ]

    def svg(self):
        """Return the whole file."""
        return "\n".join([*self.parts, "</svg>", ""])

    def box(self, x, y, width, height, words="", fill=WHITE, size=14, dashed=False, mono=False):
        """Draw a rectangle with words in its middle; a line break begins another line."""
        place = " ".join(
            f'{name}="{number(value)}"'
            for name, value in {"x": x, "y": y, "width": width, "height": height}.items()
        )
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(f'<rect {place} fill="{fill}" stroke="{INK}"{dashes}/>')
        lines = str(words).split("\n")
        top = y + height / 2 - (len(lines) - 1) * size * 0.62
        for i, line in enumerate(lines if lines != [""] else []):
            self.text(x + width / 2, top + i * size * 1.24 + size * 0.35, line, size, mono=mono)

    def cells(self, x, y, width, height, contents, fill=WHITE, size=12):
        """Draw a row of equal boxes. `fill` is one colour, or a list of them."""
        fills = [fill] * len(contents) if isinstance(fill, str) else fill
        for i, (words, colour) in enumerate(zip(contents, fills, strict=True)):
            self.box(x + i * width, y, width, height, words, colour, size)

    def circle(self, x, y, radius, words="", fill=WHITE, size=13):
        """Draw a circle around a point, with words in its middle."""
        place = f'cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"'
        self.parts.append(f'<circle {place} fill="{fill}" stroke="{INK}"/>')
        if words:
            self.text(x, y + size * 0.35, words, size)

    def text(self, x, y, words, size=14, at="middle", bold=False, mono=False):
        """Write a line of words whose baseline is y. `at` is what lies at x: start, middle, end."""
        look = ' font-weight="bold"' if bold else ""
        look += f' font-family="{MONO}"' if mono else ""
        self.parts.append(
            f'<text x="{number(x)}" y="{number(y)}" font-size="{size}" text-anchor="{at}" '
            f'fill="{INK}"{look}>{escape(words, quote=False)}</text>'
        )

    def heading(self, x, y, words):
        """Write a bold line that begins at x."""
        self.text(x, y, words, at="start", bold=True)

    def note(self, x, y, words):
        """Write a small line that begins at x."""
        self.text(x, y, words, 12, at="start")

    def line(self, *points, head=False, thick=False):
        """Draw a line through points, (x, y) each, with an arrow's head at its end if asked."""
        way = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        look = ' marker-end="url(#head)"' if head else ""
        width = 3 if thick else 1.5
        self.parts.append(
            f'<polyline points="{way}" fill="none" stroke="{INK}" stroke-width="{width}"{look}/>'
        )

    def arrow(self, x1, y1, x2, y2):
        """Draw a straight arrow."""
        self.line((x1, y1), (x2, y2), head=True)
