"""Admission of edited CuTe DSL sources: they hold kernels only, which call listed functions of CuTe
DSL and those of kernel/. The compiling process imports the source, so the source must not reach
anything else."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import NoReturn

from backends.backend import BackendError
from backends.shared.python_text import hidden_names, plain_tree

IMPORTS = frozenset(
    """
    import cutlass
    import cutlass.cute as cute
    from cutlass import BFloat16, Boolean, Float16, Float32, Float64, Int8, Int16, Int32, Int64
    from cutlass import Uint8, const_expr
    from cutlass import Float8E4M3FN, Float8E5M2
    from cutlass.cute.nvgpu import warpgroup
    from backends.cutedsl.kernel import *
    """.strip().split("\n    ")
)
TYPES = frozenset(
    """
    BFloat16 Boolean Float8E4M3FN Float8E5M2 Float16 Float32 Float64 Int8 Int16 Int32 Int64 Uint8
    """.split()
)
CALLED = TYPES | frozenset(  # called by their bare names
    """
    add_to arrive_cluster arrive_warp assume await_raised copy_async copy_run get give_columns_back init_signals load load_box load_columns
    load_matrices matrix mma keep_order operand put raise_flag rank result scan scan_after scan_one scan_one_after shuffle_xor signal_matmuls store store_box
    sync_cluster take_columns take_number tensor_mma vector warpgroup_mma where wide const_expr range max min
    """.split()
)
MEMBERS = {  # members of modules
    "cutlass": frozenset("range range_constexpr".split()),
    "cute": frozenset(
        """
        kernel Pointer CopyAtom arch make_layout make_tensor make_rmem_tensor make_swizzle
        recast_ptr crd2idx ceil_div round_up
        """.split()
    ),
    "cute.arch": frozenset(
        """
        thread_idx block_idx grid_dim get_dyn_smem sync_threads barrier fence_proxy mbarrier_wait
        mbarrier_arrive mbarrier_arrive_and_expect_tx cp_async_commit_group cp_async_wait_group
        cp_async_bulk_commit_group cp_async_bulk_wait_group setmaxregister_increase
        setmaxregister_decrease fence_acq_rel_gpu
        """.split()
    ),
    "warpgroup": frozenset("fence commit_group wait_group".split()),
}
OF_TENSORS = frozenset(("iterator", "layout"))
PARAMETERS = frozenset(("cute.Pointer", "cute.CopyAtom", "Int32"))
STRINGS = frozenset(("async.shared", "cta"))
_STATEMENTS = (ast.Assign, ast.AugAssign, ast.Expr, ast.For, ast.If, ast.Pass)
_EXPRESSIONS = (
    *(ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare),
    *(ast.Subscript, ast.Tuple, ast.List, ast.Lambda, ast.ListComp),
)
_OUTSIDE = "outside of kernels there are the imports, numbers and a text about the kernel"


def _public(file: Path) -> frozenset[str]:
    """The functions and constants of a module that a kernel may use."""
    found: set[str] = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name=name):
                found.add(name)
            case ast.Assign(targets=targets):
                names = (n for t in targets for n in ast.walk(t))
                found |= {n.id for n in names if isinstance(n, ast.Name)}
    return frozenset(n for n in found if not n.startswith("_"))


FUNCTIONS = _public(Path(__file__).parent / "kernel" / "functions.py")


def require_admissible(source: str) -> None:
    """Raises BackendError("build") at the first construct that a kernel may not use."""
    tree = plain_tree(source)
    known: set[str] = set()
    for n, node in enumerate(tree.body):
        match node:
            case ast.Import() | ast.ImportFrom():
                if ast.unparse(node) not in IMPORTS:
                    _refuse(node, f"it may be: {'; '.join(sorted(IMPORTS))}")
            case ast.Assign(targets=[ast.Name(name)], value=ast.Constant(bool() | int())):
                known.add(name)
            case ast.FunctionDef():
                _require_kernel(node, known)
            case ast.Expr(ast.Constant(str())) if n == 0:
                pass
            case _:
                _refuse(node, _OUTSIDE)


def _require_kernel(node: ast.FunctionDef, known: set[str]) -> None:
    if [ast.unparse(d) for d in node.decorator_list] != ["cute.kernel"]:
        _refuse(node, "a function is marked @cute.kernel, and with nothing else")
    given = node.args
    if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults:
        _refuse(node, "the parameters of a kernel have no defaults, and none is of many")
    for a in given.args:
        if a.annotation is None or ast.unparse(a.annotation) not in PARAMETERS:
            _refuse(a, f"a parameter is a {', '.join(sorted(PARAMETERS))}")
    if node.returns is not None:
        _refuse(node, "a kernel gives nothing back")
    bound = {a.arg for a in given.args} | {
        n.id
        for s in node.body
        for n in ast.walk(s)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    bound |= {a.arg for s in node.body for n in ast.walk(s) if isinstance(n, ast.arg) for a in [n]}
    if clash := bound & (CALLED | MEMBERS.keys() | {"fn"}):
        _refuse(node, f"`{min(clash)}` is a name of the interface")
    for s in node.body:
        for child in ast.walk(s):
            for name in hidden_names(child):
                _refuse(node, f"`{name}` is Python's own outside of what binds it")
            _require_node(child, bound | known)


def _require_node(node: ast.AST, known: set[str]) -> None:
    match node:
        case ast.stmt() if not isinstance(node, _STATEMENTS):
            _refuse(node, "a kernel has assignments, calls, loops and conditions alone")
        case ast.For(orelse=[_, *_]):
            _refuse(node, "a loop has no `else`")
        case ast.Constant(str() as text) if text not in STRINGS:
            _refuse(node, "a kernel has no strings")
        case ast.Constant(value) if not isinstance(value, bool | int | float | str | None):
            _refuse(node, "a constant is a number")
        case ast.Attribute():
            _require_member(node)
        case ast.Name(name) if not (
            name in known or name in CALLED or name in MEMBERS or name == "fn"
        ):
            _refuse(node, "it is no name of the kernel or of the interface")
        case ast.Call(func=called):
            if not isinstance(called, ast.Name | ast.Attribute):
                _refuse(node, "what is called has a name")
            if isinstance(called, ast.Attribute) and called.attr in OF_TENSORS:
                _refuse(node, "layouts are called by `cute.crd2idx`")
        case ast.expr() if not isinstance(node, _EXPRESSIONS):
            _refuse(node, "a kernel is plain expressions")


def _require_member(node: ast.Attribute) -> None:
    root = ast.unparse(node.value)
    if root == "fn":
        allowed = FUNCTIONS
    else:
        allowed = MEMBERS.get(root, OF_TENSORS if isinstance(node.value, ast.Name) else frozenset())
    if node.attr not in allowed or not isinstance(node.ctx, ast.Load):
        _refuse(node, f"of `{root}` there may be: {', '.join(sorted(allowed)) or 'nothing'}")


def _refuse(node: ast.AST, why: str) -> NoReturn:
    text = ast.unparse(node).splitlines()[0] if isinstance(node, ast.stmt | ast.expr) else node.arg  # type: ignore[attr-defined]
    raise BackendError("build", f"line {node.lineno}: `{text}` is not admitted: {why}")  # type: ignore[attr-defined]
