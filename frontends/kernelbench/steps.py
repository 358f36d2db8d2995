"""What a `ModelNew` runs on: steps of kernels over the tensors of its module. A solution file holds the text of this
module below its imports (`solution.py`), as it imports nothing of this project."""

import operator
import weakref

import torch

_ADDRESS = torch.Tensor.data_ptr
_FACTS = operator.attrgetter("dtype", "shape", "requires_grad")


def _model_new_leaves(args, count):
    """The arguments of a call, flat."""
    leaves = args
    if not all(isinstance(a, torch.Tensor) for a in args):
        leaves = torch.utils._pytree.tree_leaves(args)
    if len(leaves) != count:
        raise TypeError(f"`ModelNew` is given {len(leaves)} arguments; allowed: {count}")
    return leaves


def _model_new_input(name, tensor, dtype, shape, like):
    """A tensor in row-major order; an error where the kernels are not built for it."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"`{name}` is {type(tensor).__name__}; allowed: a tensor")
    if tensor.dtype != dtype or tensor.shape != shape:
        raise ValueError(
            f"`{name}` is {tensor.dtype}{list(tensor.shape)}; allowed: {dtype}{list(shape)}"
        )
    if like is not None and tensor.device != like.device:
        raise ValueError(
            f"`{name}` is on {tensor.device}; allowed: {like.device}, as the first input"
        )
    if tensor.requires_grad and torch.is_grad_enabled():
        raise ValueError(
            f"`{name}` requires gradients, and the kernels compute none; call it under torch.no_grad()"
        )
    return tensor.contiguous()


class _ModelNewHeld:
    """The parameters and buffers of a module.

    wanted: of each its path, dtype and shape, and whether steps write it.  like: a tensor of the device, None for that
    of the first.
    """

    def __init__(self, module, wanted, like):
        places, found, tensors = {}, [], []
        for path, dtype, shape, _ in wanted:
            *parents, name = path.split(".")
            part = module
            for parent in parents:
                places[id(part._modules), parent] = part._modules
                part = part._modules[parent]
            own = [t for t in (part._parameters, part._buffers) if name in t]
            table = own[0] if own else part.__dict__
            places[id(table), name] = table
            found.append(table.get(name))
            tensors.append(_model_new_input(path, found[-1], dtype, shape, like))
            like = tensors[0] if like is None else like
        written = [n for n, (*_, writes) in enumerate(wanted) if writes]
        for n in written:  # not where a step may read another tensor
            if _model_new_overlaps(n, tensors):
                tensors[n] = tensors[n].clone()
        self.found, self.tensors = found, tensors
        self.left = [
            n for n in written if tensors[n] is not found[n]
        ]  # copied back after the steps
        self.storages = {tensors[n].untyped_storage().data_ptr() for n in written}
        self.device = None if like is None else like.device
        self.places = [(table, name) for (_, name), table in places.items()]
        self.values = [table.get(name) for table, name in self.places]
        self.facts = list(map(_FACTS, found))
        self.pointers = list(map(_ADDRESS, tensors))
        self.kept = all(map(operator.is_, found, tensors))
        self.asks = any(t.requires_grad for t in found)
        self.memory = [t.detach() for t in found]  # so that no other tensor gets it
        self.made, self.versions, self.kind = None, None, None

    def same(self, like):
        """Whether the module has the same tensors as before, where they were, and no call need check them."""
        return (
            self.kept
            and not self.asks
            and (like is None or like.device == self.device)
            and all(map(operator.is_, [table.get(n) for table, n in self.places], self.values))
            and list(map(_ADDRESS, self.found)) == self.pointers
            and list(map(_FACTS, self.found)) == self.facts
            and all(map(torch.Tensor.is_contiguous, self.found))
        )

    def constants(self, numbers, compute):
        """What `compute` gives, computed again when the tensors of these numbers have changed."""
        read = [self.found[n] for n in numbers]
        versions = [None if t.is_inference() else t._version for t in read]
        if self.made is None or None in versions or versions != self.versions:
            self.made, self.versions = compute(), versions
        return self.made

    def apart(self, tensor):
        """A tensor of the call; a copy where steps write into its memory."""
        return tensor.clone() if tensor.untyped_storage().data_ptr() in self.storages else tensor

    def put_back(self):
        """Copies what steps wrote for the module to where it holds it."""
        for n in self.left:
            self.found[n].data.copy_(self.tensors[n])


def _model_new_overlaps(n, tensors):
    """Whether a tensor shares memory with another one; all are in row-major order."""
    spans = [(t.data_ptr(), t.data_ptr() + t.nbytes) for t in tensors]
    low, high = spans[n]
    return any(m != n and a < high and low < b for m, (a, b) in enumerate(spans))


_MODEL_NEW_HELD = weakref.WeakKeyDictionary()  # by module, so that copies of it have their own


def _model_new_held(module, wanted, like):
    """The parameters and buffers of a module, checked where they are not those of its last call."""
    held = _MODEL_NEW_HELD.get(module)
    if held is None or not held.same(like):
        held = _MODEL_NEW_HELD[module] = _ModelNewHeld(module, wanted, like)
    return held


class _ModelNewSteps:
    """Steps of kernels: each is a kernel's `launch` and its tensors by name, with a shape where the kernel sees another.

    again: how launches are made again, None where each is made as the first.  given, held: the names of tensors that
    each call gives, and of the module's.  memory: bytes that each call allocates.  inside: the tensors in it: first
    byte, dtype and shape.
    """

    def __init__(self, again, given, held, memory, inside, steps):
        self.again, self.memory, self.inside, self.steps = again, memory, inside, steps
        self.at = {name: n for n, name in enumerate((*given, *held, *inside))}
        self.offsets = [first for first, _, _ in inside.values()]
        self.known = {}  # by what launches depend on: numbers, and launches with what picks their arguments

    def __call__(self, given, held=None):
        """Runs the steps. given: tensors.  held: a `_ModelNewHeld`."""
        device = given[0].device if given else held.device
        memory = torch.empty(self.memory, dtype=torch.uint8, device=device)
        place = self.again.place() if self.again else None
        if place is None:
            self._ordinary(given, held, memory, None)
            return
        number, stream = place
        if held is not None and held.kind is None:
            held.kind = self.again.kind(held.tensors)
        kind = number, self.again.kind([*given, memory]), held and held.kind
        if kind not in self.known:
            self.known[kind] = self._bound(self._ordinary(given, held, memory, self.again.noted))
            return
        if self.known[kind] is None:
            self._ordinary(given, held, memory, None)
            return
        numbers, launches = self.known[kind]
        first = memory.data_ptr()
        values = [*map(_ADDRESS, given), *(held.pointers if held else ())]
        values += [first + offset for offset in self.offsets]
        values += numbers
        for launch, pick in launches:
            launch(stream, pick(values))

    def _ordinary(self, given, held, memory, noted):
        """Runs the steps on tensors. noted: makes a `launch` and says how it is made again, None for no such thing."""
        inside = [
            memory[at : at + dtype.itemsize * torch.Size(shape).numel()].view(dtype).view(shape)
            for at, dtype, shape in self.inside.values()
        ]
        tensors = [*given, *(held.tensors if held else ()), *inside]
        made = []
        for launch, *wanted in self.steps:
            found = [
                tensors[self.at[t]] if isinstance(t, str) else tensors[self.at[t[0]]].view(t[1])
                for t in wanted
            ]
            made.append(noted(launch, found) if noted else launch(*found))
        return made

    def _bound(self, made):
        """How the steps are made again, from how each is; None where one is not."""
        if None in made:
            return None
        numbers, launches = [], []
        for (_, *wanted), noted in zip(self.steps, made):
            names = [t if isinstance(t, str) else t[0] for t in wanted]
            for launch, arguments in noted:
                places = []
                for tensor, value in arguments:
                    if tensor is None:
                        numbers.append(value)
                    last = len(self.at) + len(numbers) - 1
                    places.append(last if tensor is None else self.at[names[tensor]])
                pick = places if len(places) > 1 else [slice(places[0], places[0] + 1)]
                launches.append((launch, operator.itemgetter(*pick)))
        return numbers, launches
