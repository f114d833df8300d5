"""What can be mutated in C and CUDA sources: `sites(text)`.

The text is split into tokens, of which comments, strings, preprocessor lines, assembly, template
headers and static assertions are left alone. What a mutation makes of them need not compile: the
compiler is asked later.
"""

import re

from .sites import Site, blanked, constants, swapped

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<line>^[ \t]*\#(?:\\\n|[^\n])*)
    |(?P<string>"(?:\\.|[^"\\\n])*")
    |(?P<char>'(?:\\.|[^'\\\n])*')
    |(?P<number>0[xX][0-9a-fA-F']+[uUlL]*
        |(?:\d[\d']*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[uUlLfF]*)
    |(?P<word>[A-Za-z_]\w*)
    |(?P<mark><<=|>>=|\.\.\.|::|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|[^\s])""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
PAIRS = {"(": ")", "[": "]", "{": "}"}
# What comes before a bracket that is left alone, with all that it holds.
LEFT_ALONE = {"asm", "volatile", "__asm__", "static_assert", "alignas", "__launch_bounds__"}
COMPARISONS = {
    "<": ("<=", ">=", ">"),
    "<=": ("<", ">", ">="),
    ">": (">=", "<=", "<"),
    ">=": (">", "<", "<="),
    "==": ("!=", "<=", ">="),
    "!=": ("==", "<", ">"),
}
ORDERED = {"-", "/", "%", "<<", ">>"}  # whose operands cannot be swapped for nothing
NO_STATEMENT = {
    *("if", "for", "while", "switch", "do", "else", "case", "default", "goto", "using", "typedef"),
    *("struct", "class", "enum", "union", "static", "const", "constexpr", "extern", "auto"),
    *("template", "namespace", "public", "private", "protected", "friend", "thread_local"),
}
DECLARATION = re.compile(r"(?!return\b|delete\b)[A-Za-z_][\w:]*(?:<[^;]*>)?[\s*&]+[A-Za-z_]")
LOCK = re.compile(r"[\w:]*(lock_guard|unique_lock|Lock|Scope)\b")
CALLED = re.compile(r"(\w+)\s*\(")
WAIT = re.compile(
    r"wait|[sS]ynchron|__sync|[fF]ence|[bB]arrier|(?<![bB])[lL]ock|^join|commit|arrive"
)
RELEASE = re.compile(
    r"release|[fF]ree|[dD]estroy|^close|reset|unlock|^clear|deallocate|forget|drop|munmap"
)
STATUS = re.compile(r"(PVG_ERROR_(?!VALUE_)[A-Z_]+|cudaError[A-Z]\w+)$")
PARAMETER = re.compile(r"[\w:]+(<.*>)?(\s+const)?[\s*&]+\w+$")


class Token:
    __slots__ = ("end", "kind", "start", "text")

    def __init__(self, match):
        self.kind, self.text = match.lastgroup, match.group()
        self.start, self.end = match.span()


class Source:
    """The tokens of a text that count, and which bracket belongs to which."""

    def __init__(self, text):
        self.text = text
        found = (Token(match) for match in TOKEN.finditer(text))
        self.tokens = [t for t in found if t.kind not in ("comment", "line")]
        self.partner, self.inside, opened = {}, [], []
        for i, token in enumerate(self.tokens):
            if token.text in PAIRS.values() and token.kind == "mark" and opened:
                first = opened.pop()
                self.partner[first], self.partner[i] = i, first
            self.inside.append(opened[-1] if opened else None)
            if token.text in PAIRS and token.kind == "mark":
                opened.append(i)
        self.alone = self.left_alone()

    def left_alone(self):
        """The numbers of the tokens that no mutation touches."""
        alone = set()
        for i, token in enumerate(self.tokens):
            following = self.word(i + 1)
            if token.text in LEFT_ALONE and following == "(":
                alone |= set(range(i, self.partner.get(i + 1, i) + 1))
            if token.text == "template" and following == "<":
                depth, j = 0, i + 1
                while j < len(self.tokens) and self.tokens[j].text not in "{;":
                    depth += {"<": 1, ">": -1, ">>": -2}.get(self.tokens[j].text, 0)
                    j += 1
                    if depth <= 0:
                        break
                alone |= set(range(i, j))
        return alone

    def word(self, i):
        return self.tokens[i].text if 0 <= i < len(self.tokens) else ""

    def part(self, first, last):
        """The text of some tokens, from one to the other."""
        return self.text[self.tokens[first].start : self.tokens[last].end]

    def is_spaced(self, i):
        """Whether a sign stands between spaces, as a binary operator does and a bracket <> not."""
        token = self.tokens[i]
        return self.text[token.start - 1].isspace() and self.text[token.end].isspace()

    def is_code(self, i):
        """Whether a { opens a block of statements; that of a struct or of a list of values not."""
        before = self.word(i - 1)
        if before in (")", "else", "do", "try", "const", "noexcept", "override", "mutable"):
            return True
        outer = self.inside[i]
        in_code = outer is not None and self.word(outer) == "{" and self.is_code(outer)
        return before in (";", "{", "}", ":") and in_code

    def begins_statement(self, i):
        around = self.inside[i]
        if around is None or self.word(around) != "{" or not self.is_code(around):
            return False
        before = self.word(i - 1)
        if before == ")":
            return self.word(self.partner.get(i - 1, 0) - 1) in ("if", "for", "while", "constexpr")
        return before in (";", "{", "}", "else", "do")

    def end_of_statement(self, i):
        """The number of its semicolon; None if it is no simple statement."""
        while i < len(self.tokens):
            word = self.word(i)
            if word == ";":
                return i
            if word == "{" and self.is_code(i):
                return None
            if word in PAIRS:
                i = self.partner.get(i, len(self.tokens))
            elif word in PAIRS.values():
                return None
            i += 1
        return None

    def operand(self, i, step):
        """The first or last token of the simple operand that begins beside a sign; None."""
        if step < 0:
            while self.word(i) in (")", "]"):
                i = self.partner.get(i, 0) - 1
            if self.tokens[i].kind not in ("word", "number"):
                return None
            while self.word(i - 1) in (".", "->", "::"):
                i = self.operand(i - 2, step)
                if i is None:
                    return None
            return i
        if self.tokens[i].kind not in ("word", "number"):
            return None
        while self.word(i + 1) in ("(", "[", ".", "->", "::"):
            i = i + 2 if self.word(i + 1) in (".", "->", "::") else self.partner.get(i + 1, i + 1)
        return i


def sites(text):
    """Every place of a text that a rule can change."""
    source = Source(text)
    rules = (comparison, constant, condition, status, swapped_operands, swapped_arguments)
    found = []
    for i in range(1, len(source.tokens) - 1):
        if i not in source.alone:
            for rule in rules:
                found += filter(None, [rule(source, i)])
            found += filter(None, [dropped(source, i)])
    return found


def comparison(source, i):
    token = source.tokens[i]
    if token.kind == "mark" and token.text in COMPARISONS and source.is_spaced(i):
        return Site("comparison", token.start, token.end, COMPARISONS[token.text])


def constant(source, i):
    token = source.tokens[i]
    if token.kind != "number":
        return None
    number, suffix = re.fullmatch(r"(0[xX][0-9a-fA-F']+|.*?)([uUlLfF]*)", token.text).groups()
    is_integer = re.fullmatch(r"0[xX][0-9a-fA-F']+|[\d']+", number)
    value = int(number.replace("'", ""), 0) if is_integer else float(number.replace("'", ""))
    others = [f"{other}{suffix}" for other in constants(value)]
    others = [f"({other})" if other.startswith("-") else other for other in others]
    return Site("constant", token.start, token.end, others)


def condition(source, i):
    token = source.tokens[i]
    if token.text in ("&&", "||") and source.is_spaced(i):
        other = "||" if token.text == "&&" else "&&"
        return Site("condition", token.start, token.end, (other,))
    is_constexpr = source.word(i + 1) == "constexpr"
    opening = i + 1 + is_constexpr
    if token.text not in ("if", "while") or source.word(opening) != "(":
        return None
    closing = source.partner.get(opening, opening)
    if closing <= opening + 1:
        return None
    inner = source.part(opening + 1, closing - 1)
    if ";" in inner:
        return None
    others = [f"!({inner})", "true", "false"] if token.text == "if" else ["false"]
    others = [blanked(inner, other) for other in others]
    first, last = source.tokens[opening + 1], source.tokens[closing - 1]
    return Site("condition", first.start, last.end, others)


def status(source, i):
    token = source.tokens[i]
    if token.kind != "word" or not STATUS.match(token.text):
        return None
    family = token.text[:9]
    others = {t.text for t in source.tokens if t.text.startswith(family) and STATUS.match(t.text)}
    if family == "PVG_ERROR":
        others |= {"PVG_ERROR_VALUE", "PVG_ERROR_TYPE", "PVG_ERROR_INDEX"}
    return Site("error", token.start, token.end, sorted(others - {token.text}))


def swapped_operands(source, i):
    if source.word(i) not in ORDERED or not source.is_spaced(i):
        return None
    first, last = source.operand(i - 1, -1), source.operand(i + 1, 1)
    if first is None or last is None:
        return None
    return swapped(source.text, (source.tokens[first].start, source.tokens[i - 1].end),
                   (source.tokens[i + 1].start, source.tokens[last].end))  # fmt: skip


def swapped_arguments(source, i):
    """Two arguments of a call, beside each other."""
    if source.word(i) != "," or source.word(source.inside[i] or 0) != "(":
        return None
    opening = source.inside[i]
    commas = [j for j in range(opening, source.partner.get(opening, opening))
              if source.word(j) == "," and source.inside[j] == opening]  # fmt: skip
    edges = [opening, *commas, source.partner.get(opening, opening)]
    at = edges.index(i)
    before, after = (edges[at - 1] + 1, i - 1), (i + 1, edges[at + 1] - 1)
    texts = [source.part(*before), source.part(*after)]
    is_call = source.tokens[opening - 1].kind == "word" and source.word(opening - 1) != "for"
    if not is_call or any(PARAMETER.match(text) for text in texts):
        return None
    spans = [(source.tokens[a].start, source.tokens[b].end) for a, b in (before, after)]
    return swapped(source.text, *spans)


def dropped(source, i):
    if source.word(i) in NO_STATEMENT or not source.begins_statement(i):
        return None
    end = source.end_of_statement(i)
    if end is None or end == i:
        return None
    text = source.part(i, end)
    if DECLARATION.match(text) and not LOCK.match(text):
        return None
    called = [] if text.startswith("return") else CALLED.findall(text)
    rule = "statement"
    if LOCK.match(text) or any(map(WAIT.search, called)):
        rule = "wait"
    elif any(map(RELEASE.search, called)):
        rule = "release"
    return Site(rule, source.tokens[i].start, source.tokens[end].end, (blanked(text, "{}"),))
