"""The description of sources: the device interface as declared in the header, and examples."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from backends.shared.admission import DEEPEST, WORDS
from backends.shared.declarations import listed
from backends.shared.texts import BUILTINS
from backends.sim.admission import CALLED, INTERNAL, RULES
from backends.sim.native.load import device_include

EXAMPLES = Path(__file__).parent / "examples.cc"
OWN, FOR_KERNELS = (
    "// -- The simulator's own --",
    "// -- For kernels --",
)  # begins a part of the header


@cache
def interface() -> str:
    """The description, in Markdown without a title."""
    return f"""\
The source is C++20 against `device.h`: one coroutine `KERNEL(name)` for each launch, which every \
processing element (PE) runs. The names of the launches, and the order of their tensors and sizes, stay \
as they are. The text is checked before it is compiled:

- Outside of kernels there are `{RULES.include}`, constants (`constexpr`), enums and namespaces. Nothing \
outlives a launch.
- Inside there are {RULES.what}: the types {listed(RULES.types - {"const"})}.
- Nothing is called but {listed(CALLED - BUILTINS)}, and {listed(BUILTINS)}. There are no functions, \
lambdas or templates of your own.
- No pointer, reference to what is not constant, array, subscript, cast, character or macro, and none of \
the words {listed(WORDS)}. Of the interface, {listed(INTERNAL)} are not named, nor the members \
{listed(RULES.members)}.
- Brackets are nested at most {DEEPEST} deep.

## The interface

```c++
{declarations()}```

## Examples

Each computes what its comment says; a test builds and runs them.

```c++
{_examples()}```"""


@cache
def declarations() -> str:
    """The header without the parts that only the simulator uses."""
    header = (device_include() / "device.h").read_text(encoding="utf-8")
    kept: list[str] = []
    own = False
    for line in header.splitlines():
        if line.strip() in (OWN, FOR_KERNELS):
            own = line.strip() == OWN
        elif not own:
            kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept).strip()) + "\n"


def _examples() -> str:
    return EXAMPLES.read_text(encoding="utf-8")
