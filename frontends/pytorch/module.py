"""A module of PyTorch as one spec: the walk through its exported graph."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch
from torch._ops import OpOverload
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from torch.fx import Node
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from frontends.aten.apply import apply, operator_name, require_sized
from frontends.aten.table import find
from frontends.builder import Builder, Meta, Value
from frontends.dtypes import name_of
from frontends.pytorch.complex_pairs import REAL, Complex, Outs, apply_complex, is_complex
from frontends.pytorch.external import BY_STRIDES, require_known, require_takes, stem
from frontends.pytorch.imported import (
    ArgumentLeaf,
    External,
    Held,
    Imported,
    Mutation,
    Operand,
    ResultLeaf,
)
from frontends.pytorch.names import tensor_name
from frontends.pytorch.open_sizes import OpenSizes
from frontends.pytorch.place import place_of
from frontends.pytorch.trace import Dynamic, called, trace
from ir.errors import KernelError
from ir.spec import Expr, Number

_CHECKS = ("_assert", "sym_constrain", "_assert_tensor_metadata")  # operators without results
_MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)


def imported(
    subject: torch.nn.Module | Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    dynamic: Dynamic | None = None,
    allow_torch: Collection[str] = (),
) -> Imported:
    """The equations of a call of a module or function.

    name: of the spec; else the module's own.  dynamic: the sizes that stay open, by argument and
    dimension: `{"x": {0: "B"}}`.  allow_torch: operators left to PyTorch, named without overload.
    Raises KernelError where the module cannot be exported, or an operator has no equations.
    """
    require_known(allow_torch)
    program = trace(subject, args, kwargs, dynamic, allow_torch)
    made = of_program(program, tensor_name(name or called(subject)), dynamic or {}, allow_torch)
    training = isinstance(subject, torch.nn.Module) and subject.training
    return replace(made, training=training)


def of_program(
    program: ExportedProgram, name: str, dynamic: Dynamic, allow_torch: Collection[str] = ()
) -> Imported:
    """The equations of an exported graph."""
    walk = _Walk(program, OpenSizes(program, dynamic), allow_torch)
    walk.placeholders()
    for node in program.graph.nodes:
        if node.op not in ("placeholder", "output"):
            walk.node(node)
    return walk.finished(name)


class _Walk:
    """One graph on its way into a builder. values: of nodes: Values, lists of them, sizes."""

    def __init__(self, program: ExportedProgram, sizes: OpenSizes, allow_torch: Collection[str]):
        self.program = program
        self.signature = program.graph_signature
        self.sizes = sizes
        self.allow_torch = allow_torch
        self.builder = Builder()
        self.values: dict[str, Any] = {}
        self.origins: dict[str, ResultLeaf] = {}
        self.arguments: list[ArgumentLeaf] = []
        self.held: list[Held] = []
        self.constants: dict[str, torch.Tensor] = {}
        self.external: list[External] = []
        self.left: dict[str, Value] = {}  # what external calls are given

    def placeholders(self) -> None:
        """The inputs: the call's own arguments first, then what the module holds."""
        nodes = {n.name: n for n in self.program.graph.nodes if n.op == "placeholder"}
        specs = sorted(self.signature.input_specs, key=lambda s: s.kind != InputKind.USER_INPUT)
        for given in specs:
            if given.kind == InputKind.USER_INPUT:
                self._argument(given.arg, nodes[given.arg.name])
            elif given.kind in (InputKind.PARAMETER, InputKind.BUFFER):
                node = nodes[given.arg.name]
                value = self._input(node, given.target)
                self.held.append(Held(value.name, given.target, is_complex(node.meta["val"])))
                self.origins[given.arg.name] = ResultLeaf("held", given.target)
            elif given.kind == InputKind.TOKEN:  # orders calls that have effects, and is no tensor
                self.values[given.arg.name] = None
            elif given.kind == InputKind.CONSTANT_TENSOR:
                self._constant(nodes[given.arg.name], self.program.constants[given.target])
            else:
                raise KernelError(f"the module holds `{given.target}`, which is no tensor")

    def _argument(self, given: Any, node: Node) -> None:
        place = len(self.arguments)
        if not isinstance(given, TensorArgument):
            self.values[node.name] = value = getattr(given, "value", None)
            self.arguments.append(ArgumentLeaf(None, False, value))
            return
        if is_complex(node.meta["val"]):
            raise KernelError(
                f"the argument `{node.name}` is complex",
                allowed="real arguments; parameters and buffers may be complex",
                hint="take torch.view_as_real(x) and call torch.view_as_complex on it",
            )
        self.arguments.append(ArgumentLeaf(self._input(node, node.name).name, True))
        self.origins[node.name] = ResultLeaf("argument", place)

    def _input(self, node: Node, path: str) -> Value:
        """A tensor that is given; a complex one as `torch.view_as_real` shows it."""
        meta, name = self._meta(node.meta["val"]), tensor_name(path)
        if not is_complex(node.meta["val"]):
            self.values[node.name] = value = self.builder.input(name, meta.dtype, meta.shape)
            return value
        value = self.builder.input(name, meta.dtype, (*meta.shape, 2))
        view = torch.ops.aten.view_as_complex.default
        (self.values[node.name],) = apply_complex(self.builder, view, (value,), {}, (meta,))
        return value

    def _constant(self, node: Node, tensor: torch.Tensor) -> None:
        known = getattr(tensor, "constant", None) if _is_fake(tensor) else tensor
        self.origins[node.name] = ResultLeaf("constant", tensor)
        if is_complex(tensor):
            self.constants[self._input(node, node.name).name] = torch.view_as_real(tensor)
            return
        if known is not None and known.numel() == 1 and known.item() == known.item():
            number = Number(known.item())
            self.values[node.name] = self.builder.define(
                self._meta(tensor), lambda *_: number, "constant"
            )
            return
        self.constants[self._input(node, node.name).name] = tensor

    def node(self, node: Node) -> None:
        """One call."""
        try:
            self.values[node.name] = self._called(node)
        except KernelError as error:
            raise error if error.where else error.within(place_of(node)) from error

    def _called(self, node: Node) -> Any:
        val = node.meta.get("val")
        if isinstance(val, torch.SymInt | torch.SymFloat | int | float | bool):
            return self.sizes.written(val)
        if node.target is operator.getitem:
            return self.values[node.args[0].name][node.args[1]]
        if node.target is torch.ops.higher_order.with_effects:  # a token before, and one after
            _, target, *args = node.args
            results = val[1] if len(val) == 2 else tuple(val[1:])
            made = self._operator(target, tuple(args), node.kwargs, results)
            return [None, *([made] if len(val) == 2 else made)]
        if stem(node.target) in BY_STRIDES:
            _require_row_major(node)
        if not isinstance(node.target, OpOverload):
            if isinstance(val, torch.SymBool) or val is None and node.op != "call_function":
                return None
            raise KernelError(
                f"`{node.target}` is no operator of ATen and has no equations",
                hint="for a choice by the values of tensors write torch.where, for a loop of known "
                "length one of Python",
            )
        return self._operator(node.target, node.args, node.kwargs, val)

    def _operator(self, target: OpOverload, args: Any, kwargs: Any, val: Any) -> Any:
        """The results of an operator, of which PyTorch says `val`."""
        if target._schema.name.partition("::")[2].startswith(_CHECKS):
            return None
        args, kwargs = self._resolved(args), self._resolved(kwargs)
        if stem(target) in self.allow_torch:
            return self._external(target, args, kwargs, val)
        if stem(target) == "_linalg_check_errors" and args[0] not in self.builder.inputs:
            return None  # it refuses a singular matrix, of which equations tell (`info`)
        if target.namespace != "aten" and not find(operator_name(target)):
            raise KernelError(
                f"the operator `{target}` is not of ATen and has no equations",
                hint=f"--allow-torch {stem(target)}",
            )
        out = tuple(self._meta(t) for t in tree_flatten(val)[0] if t is not None)
        if is_complex(args, kwargs, val):
            return self._complex(target, args, kwargs, val, out)
        made = apply(self.builder, target, args, kwargs, out)
        self._sized(made)
        return made[0] if isinstance(val, torch.Tensor) else list(made)

    def _complex(self, target: OpOverload, args: Any, kwargs: Any, val: Any, out: Outs) -> Any:
        """The results of an operator with complex tensors. A cast to a real dtype keeps the real part."""
        made = apply_complex(self.builder, target, args, kwargs, out)
        leaves = [leaf for leaf in tree_flatten(val)[0] if leaf is not None]
        made = tuple(
            m.real if isinstance(m, Complex) and not is_complex(leaf) else m
            for m, leaf in zip(made, leaves, strict=True)
        )
        return made[0] if isinstance(val, torch.Tensor) else list(made)

    def _sized(self, made: Sequence[Value | None]) -> None:
        """No size depends on data but for one that has a count."""
        for size in (s for v in made if v and v.name not in self.builder.counts for s in v.shape):
            if not self.sizes.known(size):
                raise KernelError(
                    "the size of a result depends on the values of tensors",
                    hint="compute with all elements and a mask: `torch.where(mask, x, 0)`",
                )

    def _resolved(self, item: Any) -> Any:
        return torch.fx.map_arg(item, lambda n: self._plain(self.values[n.name]))

    def _plain(self, value: Any) -> Any:
        if isinstance(value, Number):
            return value.value
        return self.sizes.settled(value) if isinstance(value, Expr) else value

    def _meta(self, tensor: torch.Tensor) -> Meta:
        if not isinstance(tensor, torch.Tensor):
            raise KernelError(
                "a number depends on the values of tensors (`.item()`, `int()`, `float()`)",
                hint="keep it a tensor of no dimensions",
            )
        if tensor.layout != torch.strided:
            raise KernelError(f"a tensor is {tensor.layout}", allowed="strided tensors")
        dtype = REAL.get(tensor.dtype, tensor.dtype)  # a complex one is known by its parts
        return Meta(name_of(dtype), tuple(map(self.sizes.written, tensor.shape)))

    def _external(self, target: OpOverload, args: Any, kwargs: Any, val: Any) -> Any:
        """The results of a call that is left to PyTorch, in the structure of `val`: new inputs."""
        require_takes(target, (args, kwargs))
        if is_complex(args, kwargs, val):
            raise KernelError(
                f"`{stem(target)}` is left to PyTorch and takes or gives complex tensors",
                allowed="real ones",
            )
        require_sized(self.builder, target, {"args": tree_leaves((args, kwargs))})
        leaves, structure = tree_flatten(val)
        name = f"{tensor_name(stem(target))}_out"
        args, kwargs = tree_map(self._operand, args), tree_map(self._operand, kwargs)
        metas = [None if leaf is None else self._meta(leaf) for leaf in leaves]
        made = [None if m is None else self.builder.input(name, m.dtype, m.shape) for m in metas]
        self._sized(made)
        names = tuple(None if v is None else v.name for v in made)
        self.external.append(External(str(target), tuple(args), dict(kwargs), names))
        return tree_unflatten(made, structure)

    def _operand(self, item: Any) -> Any:
        """A tensor that an external call is given: an output of the spec. What the spec is given is
        copied, by an equation that no kernel is made of."""
        if not isinstance(item, Value):
            return item
        if item.name not in self.left:
            given = item in self.builder.inputs
            self.left[item.name] = self.builder.copy(item, f"{item.name}_out") if given else item
        return Operand(self.left[item.name].name)

    def _result(self, argument: Any) -> ResultLeaf:
        if isinstance(argument, ConstantArgument):
            return ResultLeaf("constant", argument.value)
        value = self.values.get(argument.name)
        if argument.name in self.origins:
            return self.origins[argument.name]
        if isinstance(value, Complex):
            raise KernelError(
                "a result is complex", allowed="real results", hint="return torch.view_as_real(x)"
            )
        if not isinstance(value, Value):
            return ResultLeaf("constant", self._plain(value))
        if value in self.builder.inputs:  # an operator that changes nothing, as `clone`
            value = self.values[argument.name] = self.builder.copy(value, f"{value.name}_out")
        return ResultLeaf("output", value.name)

    def finished(self, name: str) -> Imported:
        """What the walk has found."""
        results, mutations = [], []
        for made in self.signature.output_specs:
            result = self._result(made.arg)
            if made.kind == OutputKind.USER_OUTPUT:
                results.append(result)
            elif made.kind in _MUTATIONS or made.kind.name == "PARAMETER_MUTATION":
                mutations.append(Mutation(self._mutated(made), result))
        outputs = self._outputs([*results, *(m.result for m in mutations)])
        spec = self.builder.spec(name, outputs, name)
        read = {t.name for t in spec.inputs}
        returned = {t.name for t in spec.outputs}
        there = {e.target for e in spec.equations}
        seed = self.builder.seeded
        return Imported(
            spec,
            MappingProxyType({a: b for a, b in self.builder.aliases.items() if a in there}),
            tuple(
                a if a.name in read else ArgumentLeaf(None, a.tensor, a.value)
                for a in self.arguments
            ),
            self.program.call_spec.in_spec,
            tuple(h for h in self.held if h.name in read),
            MappingProxyType({n: t for n, t in self.constants.items() if n in read}),
            seed.name if seed and seed.name in read else None,
            tuple(results),
            self.program.call_spec.out_spec,
            tuple(mutations),
            MappingProxyType({n: c for n, c in self.builder.counts.items() if n in returned}),
            tuple(self.sizes.symbols.values()),
            tuple(
                replace(f, outputs=tuple(n if n in read else None for n in f.outputs))
                for f in self.external
            ),
        )

    def _outputs(self, results: Sequence[ResultLeaf]) -> list[Value]:
        names = [r.key for r in results if r.kind == "output"]
        names += [v.name for v in self.left.values()]
        if not names:
            raise KernelError(
                "nothing is computed: the results are inputs or constants",
                hint="import a module that does something with its arguments",
            )
        names += [self.builder.counts[n][0] for n in names if n in self.builder.counts]
        return [self.builder.values[n] for n in dict.fromkeys(names)]

    def _mutated(self, made: Any) -> str | int:
        if made.kind != OutputKind.USER_INPUT_MUTATION:
            return made.target
        return self.origins[made.target].key


def _require_row_major(node: Node) -> None:
    """KernelError where an operator that depends on strides is given others than row-major ones,
    which kernels do not keep."""
    tensor = node.args[0].meta["val"]
    strides = tuple(tensor.stride())
    if not tensor.is_contiguous() or tensor.storage_offset():
        raise KernelError(
            f"`{stem(node.target)}` depends on how its tensor lies in memory: with strides "
            f"{strides}, from place {tensor.storage_offset()} on",
            allowed="a tensor in row-major order, in memory of its own",
            hint="call it on `.clone(memory_format=torch.contiguous_format)` of the tensor, or use "
            "slices, permute and reshape",
        )


def _is_fake(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, torch._subclasses.fake_tensor.FakeTensor)
