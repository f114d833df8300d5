"""What can be mutated in Python sources: `sites(text)`. Places are those of the syntax tree."""

import ast
import itertools
import re

from .sites import Site, constants, swapped

SIGNS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
COMPARISONS = {
    "<": ("<=", ">=", ">"),
    "<=": ("<", ">", ">="),
    ">": (">=", "<=", "<"),
    ">=": (">", "<", "<="),
    "==": ("!=",),
    "!=": ("==",),
    "is": ("is not",),
    "is not": ("is",),
    "in": ("not in",),
    "not in": ("in",),
}
ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift, ast.Pow, ast.MatMult)
# What is dropped; an assignment to a plain name only fails for want of the name.
SIMPLE = (ast.Expr, ast.AugAssign, ast.Return, ast.Raise, ast.Delete, ast.Continue, ast.Break)
KEPT = (ast.Attribute, ast.Subscript)
CALLED = re.compile(r"(\w+)\(")
WAIT = re.compile(r"wait|synchron|(?<!b)lock|^join$|barrier|acquire")
RELEASE = re.compile(r"release|^free|close|^clear$|unlink|cleanup|finali[sz]e|^remove$|^pop$")
CLASSES = ("ValueError", "TypeError", "IndexError", "OverflowError", "RuntimeError")


class Source:
    def __init__(self, text):
        self.text, self.tree = text, ast.parse(text)
        self.lines = text.encode().split(b"\n")
        self.starts = [0]
        for line in text.split("\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)

    def place(self, line, column):
        """The character at a line and column of the tree, which counts bytes."""
        return self.starts[line - 1] + len(self.lines[line - 1][:column].decode())

    def span(self, node):
        return (self.place(node.lineno, node.col_offset),
                self.place(node.end_lineno, node.end_col_offset))  # fmt: skip


def sites(text):
    """Every place of a text that a rule can change."""
    source, found = Source(text), []
    for node in nodes(source.tree):
        for rule in (comparison, constant, condition, operand, arguments, statement, error):
            found += rule(source, node)
    return sorted(found, key=lambda site: (site.start, site.end, site.rule, site.others))


def nodes(node):
    """A tree's nodes without those of f-strings, whose places older Pythons do not know."""
    if not isinstance(node, ast.JoinedStr):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from nodes(child)


def comparison(source, node):
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for i, kind in enumerate(node.ops):
            start, end = source.span(sides[i])[1], source.span(sides[i + 1])[0]
            sign = SIGNS[type(kind)]
            found = re.search(rf"(?<!\w){sign}(?!\w)", source.text[start:end])
            if found:
                at = start + found.start()
                yield Site("comparison", at, at + len(sign), COMPARISONS[sign])


def constant(source, node):
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        others = [f"({n})" if n.startswith("-") else n for n in constants(node.value)]
        if others and "inf" not in "".join(others):
            yield Site("constant", *source.span(node), others)
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield Site("condition", *source.span(node), (str(not node.value),))


def condition(source, node):
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        start, end = source.span(node.test)
        old = source.text[start:end]
        others = [f"not ({old})", "True", "False"]
        if isinstance(node, ast.While):
            others = ["False"]
        yield Site("condition", start, end, others)
    if isinstance(node, ast.BoolOp):
        word, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in itertools.pairwise(node.values):
            start, end = source.span(left)[1], source.span(right)[0]
            found = re.search(rf"\b{word}\b", source.text[start:end])
            if found:
                at = start + found.start()
                yield Site("condition", at, at + len(word), (other,))


def operand(source, node):
    pairs = []
    if isinstance(node, ast.BinOp) and isinstance(node.op, ORDERED):
        pairs.append((node.left, node.right))
    if isinstance(node, ast.IfExp):
        pairs.append((node.body, node.orelse))
    for pair in pairs:
        spans = sorted(map(source.span, pair))
        yield from filter(None, [swapped(source.text, *spans)])


def arguments(source, node):
    """Two arguments of a call, beside each other."""
    if isinstance(node, ast.Call):
        plain = [a for a in node.args if not isinstance(a, ast.Starred | ast.GeneratorExp)]
        for pair in itertools.pairwise(plain):
            yield from filter(None, [swapped(source.text, *map(source.span, pair))])


def statement(source, node):
    if isinstance(node, ast.With):
        for item in node.items:
            start, end = source.span(item.context_expr)
            text = source.text[start:end]
            if (
                re.search(r"lock|wait", text)
                and item.optional_vars is None
                and len(node.items) == 1
            ):
                start = source.span(node)[0]
                yield Site("wait", start, end, ("if True",))
    targets = node.targets if isinstance(node, ast.Assign) else []
    if not isinstance(node, SIMPLE) and not any(isinstance(t, KEPT) for t in targets):
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return  # a docstring
    start, end = source.span(node)
    called = CALLED.findall(source.text[start:end])
    rule = "statement"
    if isinstance(node, ast.Raise):
        rule = "error"
    elif isinstance(node, ast.Delete) or any(map(RELEASE.search, called)):
        rule = "release"
    elif any(map(WAIT.search, called)):
        rule = "wait"
    yield Site(rule, start, end, ("pass",))


def error(source, node):
    """Another class of exception, raised or caught."""
    names = []
    if isinstance(node, ast.Raise) and node.exc:
        names.append(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
    if isinstance(node, ast.ExceptHandler) and node.type:
        names += node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    for name in names:
        if isinstance(name, ast.Name) and re.search(r"Error$|Exception$|Interrupt$", name.id):
            others = [one for one in CLASSES if one != name.id]
            yield Site("error", *source.span(name), others)
