"""Measure how much a reader has to take in: python .ci/readability.py [--worst].

Nodes of the syntax tree count, which no formatting changes. Exits with 1 where a limit
is passed; --worst names the places.
"""

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("risingsearch", "integrations")
SECTIONS = ("Parameters", "Returns", "Examples")
HARD = 18  # complexity of a function that is hard to follow
DENSE = 10.5  # nodes per line of a file that is hard to read
SHORT = 40  # lines of code of a file that is too short to be called dense

# Limits fall: a change that needs one to rise has left standing what it replaces,
# unless it is a feature that replaces nothing.
AT_MOST = {
    "nodes": 293_000,  # 267,000 before spaces by name, ask and tell
    "nodes per line of code": 8.0,
    "joined assignments per 1,000 lines of code": 3.0,
    "literals splatted into literals": 0,
    "uses of Any": 350,
    f"functions above a complexity of {HARD}": 0,
    f"files above {DENSE} nodes per line": 0,
}
AT_LEAST = {"Returns": 150, "Parameters": 220, "Examples": 190}

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
BRANCHES = (
    ast.If
    | ast.For
    | ast.AsyncFor
    | ast.While
    | ast.IfExp
    | ast.ExceptHandler
    | ast.Assert
)
NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


def sources() -> Iterator[Path]:
    """Yield the files of the package; the link to integrations counts once."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if "risingsearch/integrations" not in path.relative_to(ROOT).as_posix():
                yield path


def lines_of_code(path: Path, tree: ast.Module) -> int:
    """Return how many lines hold code: no comment, no docstring, not empty."""
    lines: set[int] = set()
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in NO_CODE and token.type != tokenize.ENCODING:
                lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        can_have_one = isinstance(node, ast.Module | ast.ClassDef | FUNCTIONS)
        if can_have_one and ast.get_docstring(node) is not None:
            docstring = node.body[0]
            lines -= set(range(docstring.lineno, docstring.end_lineno + 1))
    return len(lines)


def complexity(function: ast.AST) -> int:
    """Return the cyclomatic complexity of a function, with those inside it."""
    count = 1
    for node in ast.walk(function):
        if isinstance(node, BRANCHES | ast.match_case):
            count += 1
        elif isinstance(node, ast.BoolOp):
            count += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            count += 1 + len(node.ifs)
    return count


def is_joined(node: ast.AST) -> bool:
    """Return whether a statement makes assignments that have nothing in common."""
    match node:
        case ast.Assign(targets=[ast.Tuple(targets)], value=ast.Tuple(values)):
            written = {ast.unparse(target) for target in targets}
            read = {
                ast.unparse(part)
                for value in values
                for part in ast.walk(value)
                if isinstance(part, ast.Name | ast.Attribute)
            }
            return len(targets) == len(values) and not written & read
    return False


def splats(node: ast.AST) -> int:
    """Return how many literals are unpacked into a literal."""
    if not isinstance(node, ast.Tuple | ast.List | ast.Set):
        return 0
    unpacked = [part.value for part in node.elts if isinstance(part, ast.Starred)]
    return sum(
        isinstance(value, ast.Tuple | ast.List | ast.Constant) for value in unpacked
    )


def sections(function: ast.AST) -> set[str]:
    """Return the sections that the docstring of a public function has."""
    if not isinstance(function, FUNCTIONS) or function.name.startswith("_"):
        return set()
    text = ast.get_docstring(function) or ""
    present = {
        name for name in SECTIONS if re.search(rf"^{name}\n-+", text, re.MULTILINE)
    }
    return present | ({"Examples"} if ">>>" in text else set())


def measured() -> tuple[dict[str, float], list[str]]:
    """Return the figures of the package, and the places that are hard to read."""
    nodes = lines = joined = splatted = loose = 0
    documented = dict.fromkeys(SECTIONS, 0)
    hard: list[str] = []
    dense: list[str] = []
    for path in sources():
        place = path.relative_to(ROOT).as_posix()
        tree = ast.parse(path.read_bytes())
        inside = list(ast.walk(tree))
        code = lines_of_code(path, tree)
        nodes += len(inside)
        lines += code
        if code > SHORT and len(inside) / code > DENSE:
            dense.append(f"{place}: {len(inside) / code:.1f} nodes per line")
        for node in inside:
            joined += is_joined(node)
            splatted += splats(node)
            loose += isinstance(node, ast.Name) and node.id == "Any"
            for name in sections(node):
                documented[name] += 1
            if isinstance(node, FUNCTIONS) and complexity(node) > HARD:
                hard.append(f"{place}: {node.name} has {complexity(node)} paths")
    counts = (nodes, nodes / lines, 1000 * joined / lines, splatted, loose)
    figures = dict(zip(AT_MOST, (*counts, len(hard), len(dense)), strict=True))
    return figures | documented, sorted(hard) + sorted(dense)


def main() -> int:
    """Print the figures beside their limits; return whether one is passed."""
    figures, places = measured()
    passed = False
    for name, figure in figures.items():
        if name in AT_MOST:
            limit = f"at most {AT_MOST[name]:,}"
            is_passed = figure > AT_MOST[name]
        else:
            limit = f"at least {AT_LEAST[name]:,}"
            is_passed = figure < AT_LEAST[name]
        passed |= is_passed
        label = f"public functions with {name}" if name in AT_LEAST else name
        print(f"{label}: {figure:,.6g} ({limit}){' <- passed' if is_passed else ''}")
    if passed or "--worst" in sys.argv:
        print(*places, sep="\n")
    return passed


if __name__ == "__main__":
    sys.exit(main())
