"""Words of C++ and of the prelude, which a text must not use as names."""

from __future__ import annotations

KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires return
    short signed sizeof static static_assert static_cast struct switch template this thread_local
    throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while
    xor xor_eq
    """.split()
)
# Of `prelude/`: types, functions that kernels call besides `fn::`, and constants.
TYPES = frozenset("Index Array Arena i64 i32 i16 i8 u8 u16 u32 u64 f16 bf16".split())
FUNCTIONS = frozenset("KERNEL least tiles in_bounds rank add_to least_of most_of".split())
CONSTANTS = frozenset("fn inf blocks NULL INT32_MAX INT32_MIN INT64_MAX INT64_MIN".split())
# Of the texts in `templates/c`.
TEXTS = frozenset("args arena tile count rest first acc run".split())
RESERVED = KEYWORDS | TYPES | FUNCTIONS | CONSTANTS | TEXTS
