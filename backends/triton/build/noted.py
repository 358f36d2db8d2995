"""Launches of Triton kernels noted as they are made, and made again past Triton's own way to a compiled kernel.

Files of users hold the text of this module below its imports, as they import nothing of this project. What a launch
depends on, `direct.py` says; here a source's `launch` runs as Python.
"""

import types

import torch
import triton

_KNOWN = triton.__version__.split(".")[:2] in (["3", "6"], ["3", "7"])
_RUN = triton.runtime.jit.JITFunction.run


class _LaunchesAgain:
    """Launches past Triton's own way: straight to the function that was compiled and loaded at the first launch."""

    @staticmethod
    def place():
        """The device and the stream of a launch; None where Triton must see it: it interprets kernels, something
        watches launches or asks for other code than usual, or it is a version of which this is not known."""
        if not _KNOWN:
            return None
        runtime, driver = triton.knobs.runtime, triton.runtime.driver
        watched = [
            getattr(h, "calls", h) for h in (runtime.launch_enter_hook, runtime.launch_exit_hook)
        ]
        other = runtime.debug or triton.knobs.compilation.instrumentation_mode
        replaced = triton.runtime.jit.JITFunction.run is not _RUN
        if (
            runtime.interpret
            or any(watched)
            or other
            or runtime.add_stages_inspection_hook
            or replaced
        ):
            return None
        device = driver.active.get_current_device()
        return device, driver.active.get_current_stream(device)

    @staticmethod
    def kind(tensors):
        """What the code for tensors of known dtypes and shapes depends on: alignment, on AMD also how large memory is."""
        found = [t.data_ptr() % 16 == 0 for t in tensors]
        if torch.version.hip is not None:
            found += [t.untyped_storage().nbytes() < 2**31 for t in tensors]
        return tuple(found)

    @staticmethod
    def noted(launch, tensors):
        """Runs a source's `launch` on tensors. What it launched: a function of a stream and arguments, and the
        arguments: the number of a tensor, whose address takes its place, or None and a value. None where Triton must
        be asked each time: it chooses options, or compares globals that the kernel reads."""
        notes, names, plain = [], dict(launch.__globals__), True
        for name in launch.__code__.co_names:
            kernel = names.get(name)
            if type(kernel) is triton.runtime.jit.JITFunction:
                names[name] = _NotedKernel(kernel, notes)
            elif isinstance(kernel, triton.runtime.jit.KernelInterface):
                plain = False
        again = types.FunctionType(launch.__code__, names, launch.__name__, launch.__defaults__)
        again(*tensors)
        made = [_again(*note, tensors) for note in notes] if plain else [None]
        return None if None in made else made


class _NotedKernel:
    """A kernel that notes its launches."""

    def __init__(self, kernel, notes):
        self.kernel, self.notes = kernel, notes

    def __getitem__(self, grid):
        def launched(*arguments, **options):
            compiled = self.kernel[grid](*arguments, **options)
            self.notes.append((self.kernel, compiled, grid, arguments, options))

        return launched


def _again(kernel, compiled, grid, arguments, options, tensors):
    """How a launch is made again; see `noted`."""
    if kernel.pre_run_hooks or kernel.used_global_vals or callable(grid):
        return None
    if not isinstance(compiled, triton.compiler.CompiledKernel):
        return None
    options = {name: v for name, v in options.items() if name in kernel.signature.parameters}
    bound = kernel.signature.bind(*arguments, **options)
    bound.apply_defaults()
    numbers = {id(tensor): n for n, tensor in enumerate(tensors)}
    found, boxes = [], []
    for place, value in enumerate(bound.arguments.values()):
        box = type(value).__name__ == "TensorDescriptor"
        tensor = numbers.get(id(value.base if box else value))
        if tensor is None and (box or isinstance(value, torch.Tensor)):
            return None
        found.append((tensor, None if tensor is not None else value))
        if box:
            boxes.append((place, vars(value)))
    x, y, z = (*grid, 1, 1)[:3]
    run, code = compiled.run, (compiled.function, compiled.packed_metadata, None, None, None)

    def launch(stream, values):
        if boxes:
            values = _with_boxes(boxes, values)
        run(x, y, z, stream, *code, *values)

    launch.compiled = compiled  # so that its function stays loaded
    return launch, found


def _with_boxes(boxes, values):
    """Arguments with tensor descriptors at their places. boxes: places, and what descriptors say."""
    values = list(values)
    for place, said in boxes:
        values[place] = types.SimpleNamespace(**{**said, "base": _Address(values[place])})
    return values


class _Address(int):
    """An address in the place of a tensor."""

    def data_ptr(self):
        return int(self)
