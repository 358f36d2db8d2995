"""Who imports whom: the table of docs/architecture.md, held against the tree.

Tests (`*_test.py`, `conftest.py`, and what imports pytest or hypothesis) are held to it too for
the project's own packages, but may use any third-party package. Benchmarks may import anything.
"""

import sys
from pathlib import Path

from tests.source_tree import (
    FOLDERS,
    ROOT,
    backend_of,
    files,
    imported,
    is_test,
    modules,
    own_imports,
)

ALL = (
    "ir",
    "machines",
    "backends",
    "frontends",
    "search",
    "kernels_generated",
    "benchmarks",
    "tools",
)

# The rooms of the language: who may import `ir`, from without, may import all of these.
LANGUAGE = (
    "ir/parse",
    "ir/variant",
    "ir/nest",
    "ir/lower",
    "ir/estimate",
    "ir/edits",
    "ir/autoschedule",
    "ir/reference",
    "ir/partition",
)

# Package: what it may import beside itself, then which third-party packages. A module is of
# the longest package that holds it; `*` is any backend's folder; None: anything.
_EVALUATED = ("search/core", "search/evaluator")
TABLE = {
    "ir": ((), ()),
    "ir/parse": (("ir",), ()),
    "ir/variant": (("ir",), ()),
    "ir/nest": (("ir",), ()),
    "ir/lower": (("ir", "ir/variant", "ir/nest"), ()),
    "ir/estimate": (("ir", "ir/nest"), ()),
    "ir/edits": (("ir", "ir/variant", "ir/lower"), ()),
    "ir/autoschedule": (
        ("ir", "ir/variant", "ir/nest", "ir/lower", "ir/estimate", "ir/edits"),
        (),
    ),
    "ir/reference": (("ir", "ir/nest"), ("numpy",)),
    "ir/partition": (("ir", "ir/parse"), ()),
    "testing/samples": (
        ("ir", "ir/parse", "ir/nest", "ir/lower", "ir/reference", "machines/gpu", "machines/tiles"),
        ("numpy",),
    ),
    "ir/rewrites": (("ir",), ()),
    "machines": (("ir", "machines/fields", "machines/gpu", "machines/tiles"), ()),
    "machines/fields": (("ir",), ()),
    "machines/gpu": (("ir", "machines/fields"), ()),
    "machines/tiles": (("ir",), ()),
    "frontends": (("ir",), None),
    "frontends/aten": (("ir", "frontends"), None),
    "frontends/pytorch": (("ir", "frontends", "frontends/aten"), None),
    "frontends/kernelbench": (("ir", "frontends", "frontends/pytorch", "backends/program"), None),
    "frontends/compiled": (
        ("ir", "frontends", "frontends/pytorch", "backends", "backends/program"),
        None,
    ),
    "backends": (("ir", "machines", "machines/fields"), ("jinja2", "torch", "numpy")),
    "backends/program": (("ir", "backends"), None),
    "backends/caged": ((), ("numpy",)),
    "backends/shared": (("ir", "backends", "backends/caged"), ("numpy",)),
    "backends/gpu": (("ir", "backends"), ()),
    "backends/gpu/testing": (("backends/gpu",), ()),
    "backends/gpu/layout": (("ir",), ()),
    "backends/gpu/threads/interpreter": (
        (
            "ir",
            "backends",
            "backends/shared",
            "backends/gpu",
            "backends/gpu/layout",
            "backends/gpu/matrix",
            "backends/gpu/threads",
            "machines/gpu",
        ),
        ("numpy",),
    ),
    "backends/gpu/matrix": (("ir", "machines/gpu", "backends/gpu/layout"), ("numpy",)),
    "backends/gpu/threads": (
        ("ir", "machines/gpu", "backends", "backends/gpu", "backends/gpu/layout"),
        (),
    ),
    "backends/gpu/threads/testing": (
        (
            "ir",
            "machines/gpu",
            "backends/gpu",
            "backends/gpu/layout",
            "backends/gpu/threads",
            "testing/samples",
        ),
        (),
    ),
    "backends/gpu/source": (
        (
            *("ir", "backends", "backends/shared", "backends/gpu"),
            *("backends/gpu/layout", "backends/gpu/threads"),
        ),
        (),
    ),
    "backends/gpu/model": (
        (
            *("ir", "machines/fields", "machines/gpu"),
            *("backends", "backends/gpu", "backends/gpu/assembly"),
        ),
        (),
    ),
    "backends/gpu/device": (("ir", "machines/gpu", "backends", "backends/gpu"), None),
    "backends/gpu/assembly": ((), ()),
    "backends/gpu/launched": (
        (
            *("ir", "machines/gpu", "backends", "backends/gpu"),
            *("backends/gpu/assembly", "backends/gpu/device", "backends/gpu/model"),
            "backends/gpu/source",
        ),
        None,
    ),
    "backends/gpu/cubins": (
        (
            *("ir", "machines/fields", "machines/gpu"),
            *("backends", "backends/shared", "backends/gpu"),
            *("backends/gpu/assembly", "backends/gpu/launched", "backends/gpu/model"),
            *("backends/gpu/source", "backends/gpu/threads", "backends/gpu/threads/interpreter"),
        ),
        None,
    ),
    "backends/*": (
        (
            "ir",
            "machines/fields",
            "machines/gpu",
            "backends",
            "backends/caged",
            "backends/shared",
            "backends/gpu",
            "backends/gpu/layout",
            "backends/gpu/matrix",
            "backends/gpu/threads",
            "backends/gpu/threads/interpreter",
            "backends/gpu/source",
            "backends/gpu/model",
            "backends/gpu/device",
            "backends/gpu/assembly",
            "backends/gpu/launched",
            "backends/gpu/cubins",
        ),
        None,
    ),
    "search": ((), ()),
    "search/core": (("ir", "machines/tiles"), ()),
    "search/warm_start": (("ir", "search/core"), ()),
    "search/loop": (("ir", "search/core", "search/warm_start"), ()),
    "search/store": (("ir", "search/core", "search/store/migrations"), None),
    "search/store/migrations": ((), None),
    "search/store/migrations/versions": ((), None),
    "search/display": (("ir", "search/core", "search/warm_start"), ("rich",)),
    "search/record": (("ir", "search/core"), ()),
    "search/whole": (
        (
            *("ir", "backends", "backends/program", "backends/gpu/device"),
            *("search/core", "search/evaluator"),
        ),
        ("torch", "numpy"),
    ),
    "search/policy": (("ir", "machines/tiles", "search/core", "search/loop"), ("ribs",)),
    "search/operator": (
        (
            "ir",
            "ir/rewrites",
            "search/core",
            "search/warm_start",
            "search/loop",
            "search/prompt",
            "search/llm",
        ),
        ("numpy", "optuna"),
    ),
    "search/llm": (("ir", "search/core"), ("openai",)),
    "search/prompt": (("ir", "search/core", "search/loop", "backends/manifest"), ("jinja2",)),
    "search/report": (("ir", "search/core"), ("jinja2", "markupsafe")),
    "search/loop/testing": (("ir", "search/core", "search/loop"), None),
    "search/operator/testing": (
        ("ir", "search/core", "search/loop", "search/operator", "search/prompt", "search/llm"),
        None,
    ),
    "search/whole/testing": (("ir", "backends", "search/whole"), None),
    "search/evaluator/testing": (
        ("ir", "backends", "backends/gpu/apart", "machines/tiles", *_EVALUATED),
        None,
    ),
    "search/evaluator": (
        (
            *("ir", "machines", "search", "search/core", "search/loop"),
            *("backends", "backends/caged", "backends/gpu/apart"),
        ),
        ("ray", "psutil", "numpy"),
    ),
    "search/cli": (
        (
            *("ir", "search", "machines/fields", "backends"),
            *("frontends", "frontends/pytorch", "frontends/kernelbench"),
        ),
        ("rich", "numpy"),
    ),
    "search/evolve": (("ir", "search", "backends", "frontends"), ()),
    "speciate": (ALL, None),
    "kernels_generated": (
        ("ir", "search/core", "search/evaluator", "search/record", "backends"),
        (),
    ),
    "benchmarks": (ALL, None),
    "benchmarks/aten": (ALL, None),
    "benchmarks/foreign": (ALL, None),
    "benchmarks/kernelbench": (ALL, None),
    "benchmarks/merge": (ALL, None),
    "benchmarks/models": (ALL, None),
    "benchmarks/modules": (ALL, None),
    "benchmarks/scale": (ALL, None),
    "benchmarks/search": (ALL, None),
    "benchmarks/testing": (ALL, None),
    "examples": (ALL, None),
    "tools": (ALL, ("pycute", "setuptools")),
    "testing": (("ir",), None),
    "testing/conformance": (("ir", "backends", "testing/samples"), None),
    "tests": (ALL, None),
    "tests/cheats": (("ir", "backends", "benchmarks", *_EVALUATED, "search/cli"), None),
    "tests/hostile": (
        (
            *("ir", "backends", "backends/caged", "search/evaluator/testing", "tests/cheats"),
            *_EVALUATED,
        ),
        None,
    ),
    "tests/device": (
        (
            *("ir", "backends/registry", "benchmarks", "benchmarks/kernelbench/judged"),
            *("frontends/kernelbench", "frontends/compiled"),
            *("search/store", "search/core/evaluation"),
        ),
        None,
    ),
    "testing/model_server": ((), ()),
    "testing/postgres": ((), ()),
    "testing/cli": (("search/evolve", "search/store"), ()),
    "bazel": ((), ("pytest",)),
    "bazel/shims": ((), ()),
}
FOR_TESTS = (
    "machines",
    "machines/gpu",
    "machines/tiles",
    "backends/gpu/testing",
    "backends/gpu/threads/testing",
    "search/evaluator/testing",
    "search/loop/testing",
    "search/operator/testing",
    "search/whole/testing",
    "testing",
    "testing/conformance",
    "testing/samples",
    "testing/model_server",
    "testing/postgres",
    "testing/cli",
    "search/store",
)  # what tests of any package may import
ONE_MODULE = ("jinja2", "torch", "sqlalchemy", "rich", "ribs", "optuna", "openai", "ray")
TEXT_ONLY = (
    "ir/parse/parse",
    "ir/print",
    "ir/verify",
    "ir/lower/verbs",
    "ir/lower/lower",
    "ir/autoschedule/autoschedule",
    "ir/estimate/cost",
    "ir/digest",
)


def package_of(module):
    """The longest package of the table that holds a module, given as a path without ending;
    a test belongs where the module does that it is named for, a program's `NAME_*_test` with it."""
    if module.endswith("_test"):
        module = module.removesuffix("_test")
        for program in (p for p in TABLE if module.startswith(f"{p}_")):
            if (ROOT / f"{program}.py").exists() and not (ROOT / f"{module}.py").exists():
                return program
    if backend_of(module + "/x"):
        return "backends/" + backend_of(module + "/x")
    parts = module.split("/")
    prefixes = ("/".join(parts[:n]) for n in range(len(parts), 0, -1))
    return next((p for p in prefixes if p in TABLE), None)


def row(package):
    return TABLE.get(package) or TABLE["backends/*"]


def external_imports(path):
    known = sys.stdlib_module_names
    tops = ((m.split("/")[0], line) for m, line in imported(path))
    return [(top, line) for top, line in tops if top not in known and top not in FOLDERS]


def allows(package, module):
    """Whether a package may import a module of the project."""
    target = package_of(module)
    allowed = (package, *row(package)[0])
    if row(package)[0] == ALL:
        return True
    if target in allowed or any(module == a for a in allowed):
        return True
    if target in LANGUAGE and "ir" in allowed and package not in ("ir", *LANGUAGE):
        return True
    # Search above its core (the command) sees all parts of it.
    return package in ("search/cli", "search/evolve") and target.startswith("search/")


def test_every_package_is_in_the_table():
    folders = {p.parent.as_posix() for p in modules() if backend_of(p) is None}
    missing = folders - set(TABLE)
    assert not missing, f"say in docs/architecture.md and in TABLE what these may import: {missing}"


def test_packages_import_only_what_the_table_allows():
    wrong = [
        f"{path}:{line}: {package_of(str(path.with_suffix('')))} imports {module}"
        for path in files(".py")
        for module, line in own_imports(path)
        if not allows(package_of(str(path.with_suffix(""))), module)
        and not (supports_tests(path) and for_tests(path, package_of(module)))
    ]
    assert not wrong, "\n".join(wrong)


def supports_tests(path):
    """Whether a file is a test, or what the tests of one package share."""
    return is_test(path) or "testing" in path.parts


def for_tests(path, target):
    """Whether any test may import a package; those of the language may import all of its rooms."""
    return target in FOR_TESTS or (path.parts[0] == "ir" and target in LANGUAGE)


def test_a_backend_never_imports_another():
    wrong = [
        f"{path}:{line}: imports {module}"
        for path in files(".py")
        for module, line in own_imports(path)
        if backend_of(path) and backend_of(module + "/x") not in (None, backend_of(path))
    ]
    assert not wrong, "\n".join(wrong)


def test_third_party_packages_are_those_of_the_table():
    wrong = [
        f"{path}:{line}: imports {top}"
        for path in modules()
        for top, line in external_imports(path)
        if (allowed := row(package_of(str(path.with_suffix(""))))[1]) is not None
        and top not in allowed
    ]
    assert not wrong, "\n".join(wrong)


def test_only_tests_import_tests():
    wrong = [
        f"{path}:{line}: imports {module}"
        for path in modules()
        for module, line in own_imports(path)
        if (ROOT / f"{module}.py").exists() and is_test(Path(f"{module}.py"))
    ]
    assert not wrong, "\n".join(wrong)


def test_only_tests_import_what_is_for_tests():
    wrong = [
        f"{path}:{line}: imports {module}"
        for path in modules()
        for module, line in own_imports(path)
        if "testing" in module.split("/")
        and "testing" not in path.parts
        and path.parts[0] != "tests"
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_imports_a_test_file():
    """Under Bazel a test sees libraries alone, and test files are in none."""
    wrong = [
        f"{path}:{line}: imports {module}"
        for path in files(".py")
        for module, line in own_imports(path)
        if module.endswith("_test")
    ]
    assert not wrong, "\n".join(wrong)


def test_a_package_knows_a_large_dependency_in_one_module():
    """But for packages that may use anything: those that are made for one dependency."""
    where = {}
    for path in modules():
        for top, _ in external_imports(path):
            package = package_of(str(path.with_suffix("")))
            if top in ONE_MODULE and row(package)[1] is not None:
                where.setdefault((package, top), set()).add(str(path))
    wrong = [f"{p}: {top} in {sorted(m)}" for (p, top), m in where.items() if len(m) > 1]
    assert not wrong, "\n".join(wrong)


def test_reading_and_lowering_need_no_numbers():
    """numpy is for the reference alone: a text is parsed, verified and lowered without it."""
    for name in TEXT_ONLY:
        seen, todo = set(), [Path(f"{name}.py")]
        while todo:
            path = todo.pop()
            if path in seen or not (ROOT / path).exists():
                continue
            seen.add(path)
            assert not external_imports(path), f"{name}.py reaches {path}, which needs numpy"
            todo += [Path(m + ".py") for m, _ in own_imports(path)]


def test_packages_form_no_cycle():
    edges = {}
    for path in modules():
        package = package_of(str(path.with_suffix("")))
        targets = {package_of(module) for module, _ in own_imports(path)} - {package, None}
        edges.setdefault(package, set()).update(targets)
    for start in edges:
        path = cycle_from(start, edges)
        assert path is None, " -> ".join(path)


def test_folders_form_no_cycle():
    """Finer than the table, as a package may have folders: those of a backend, for example."""
    edges = {}
    for path in modules():
        folder = folder_of(path.with_suffix(""))
        targets = {folder_of(Path(module)) for module, _ in own_imports(path)}
        edges.setdefault(folder, set()).update(t for t in targets if not within(folder, t))
    cycles = [cycle_from(start, edges) for start in edges]
    assert not (found := [" -> ".join(c) for c in cycles if c]), "\n".join(found)


def folder_of(module):
    """The folder of a module; a program is one by itself, as it is above what lies beside it."""
    if module.as_posix() in TABLE:
        return module.as_posix()
    return (module if (ROOT / module).is_dir() else module.parent).as_posix()


def within(one, other):
    """Whether two folders are one, or both a backend's and one inside the other: what a backend's
    parts share lies above them, beside what puts them together."""
    if one == other:
        return True
    inside = one.startswith(f"{other}/") or other.startswith(f"{one}/")
    return inside and backend_of(f"{one}/x") is not None and backend_of(f"{other}/x") is not None


def cycle_from(start, edges):
    """A way from a package back to itself; None where there is none."""
    ways, seen = [(start,)], set()
    while ways:
        way = ways.pop()
        for target in edges.get(way[-1], ()):
            if target == start:
                return (*way, start)
            if target not in seen:
                seen.add(target)
                ways.append((*way, target))
    return None


def test_the_search_for_cycles_finds_one():
    assert cycle_from("a", {"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ("a", "b", "c", "a")
    assert cycle_from("a", {"a": {"b"}, "b": {"c"}, "c": {"b"}}) is None
