"""C between the harness and an allocator of one's own: how its manifest says that it is called, as functions.

What is measured and bounded is the allocator's own function where a call needs nothing but the size, or the pointer;
else the function made here, which passes the handle, the place of the result, or whatever else the call needs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from wcet_probe.model.allocator import says

ADAPTER, CPP_ADAPTER, SUPPORT = "wp_adapter.c", "wp_adapter.cpp", "wp_support.c"
LIBRARY, STUBS = "wp_library.c", "wp_stubs.c"
"""Names of the files that are made: the calls, in C or C++; what compilers call on their own, and sbrk; ends and
errors of a C library; what does nothing."""

_HEAD = "/* SPDX-License-Identifier: 0BSD */\n/* Made by wcet-probe from the manifest of {name}. */\n"
_DIRECT = {
    "malloc": re.compile(r"(\w+)\s*\(\s*size\s*(?:,\s*cache_set\s*)?\)"),
    "free": re.compile(r"(\w+)\s*\(\s*pointer\s*\)"),
}
_PLAIN = """\
/* {name} itself is measured and bounded: a call in C must do no more than to pass its one register. */
#ifdef {name}
#error "{name} is a macro: write it in brackets under [call], as in malloc = \"(take(size))\""
#endif
#define WP_RETURNS(type) __typeof__({name}({argument})) (*)(type)
_Static_assert(_Generic(&{name}, WP_RETURNS(char): 0, WP_RETURNS(signed char): 0, WP_RETURNS(unsigned char): 0,
    WP_RETURNS(short): 0, WP_RETURNS(unsigned short): 0, WP_RETURNS(_Bool): 0, WP_RETURNS(long long): 0,
    WP_RETURNS(unsigned long long): 0, default: 1),
    "{name} takes a narrower or wider number: say under [call] what it serves, as in size <= 255 ? take(size) : 0");
#undef WP_RETURNS
"""
_APART = "__attribute__((noinline, used)) "
"""Before a function that is an operation, also where the replay calls it: it begins where the harness is left."""

_CALLED = '    __asm__ volatile("");'
"""In such a function: a compiler that sees that it does nothing would leave its calls out of the replay."""

_REPLAY = """\
struct wp_operation {{
    uint32_t kind; /* 0 malloc, 1 free */
    uint32_t slot;
    uint32_t size_bytes;
    uint32_t cache_set;
}};

/* Called for a block that was refused, which is not freed: whoever counts operations counts one. */
void wp_nothing(void);
__attribute__((noinline, used)) void wp_nothing(void)
{{
    __asm__ volatile("");
}}

/* The set-up of a state. */
__attribute__((section(".wp_harness"), used, noinline)) uint32_t
wp_replay(const struct wp_operation *operation, uint32_t count, void **slots{sizes})
{{
    uint32_t refused = 0;
    for (uint32_t i = 0; i < count; i++, operation++) {{
        if (operation->kind == 0) {{
            void *const block = {malloc}(operation->size_bytes{cache_set});
            slots[operation->slot] = block;{kept}
            refused += block == NULL;
        }} else if (slots[operation->slot] != NULL) {{
            {free}(slots[operation->slot]{size});
            slots[operation->slot] = NULL;
        }} else {{
            wp_nothing();
        }}
    }}
    return refused;
}}
"""

_TOLD = {
    "sizes": ", uint32_t *sizes",
    "kept": "\n            sizes[operation->slot] = operation->size_bytes;",
    "size": ", sizes[operation->slot]",
}
"""What a replay keeps and passes where free is told the size of its block."""

_SBRK = """
/* The heap grows upwards from its start, as a process's data does. */
unsigned char *wp_break, *wp_limit;

int brk(void *end);
void *sbrk(ptrdiff_t bytes);
void *_sbrk(ptrdiff_t bytes);

int brk(void *end)
{
    if ((unsigned char *)end > wp_limit)
        return -1;
    wp_break = end;
    return 0;
}

void *sbrk(ptrdiff_t bytes)
{
    unsigned char *const before = wp_break;
    if (bytes > wp_limit - before)
        return (void *)-1;
    wp_break = before + bytes;
    return before;
}

void *_sbrk(ptrdiff_t bytes)
{
    return sbrk(bytes);
}
"""

_ARM_RUNTIME = """
#ifdef __ARM_EABI__
/* The run-time ABI's own copies (ARM IHI 0043, section 4.3.4); a compiler calls them for structures. */
void *memcpy(void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
#define WP_COPIES(suffix)                                                                                     \\
    void __aeabi_memcpy##suffix(void *to, const void *from, size_t bytes);                                    \\
    void __aeabi_memcpy##suffix(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }        \\
    void __aeabi_memmove##suffix(void *to, const void *from, size_t bytes);                                   \\
    void __aeabi_memmove##suffix(void *to, const void *from, size_t bytes) { memmove(to, from, bytes); }      \\
    void __aeabi_memset##suffix(void *to, size_t bytes, int value);                                           \\
    void __aeabi_memset##suffix(void *to, size_t bytes, int value) { memset(to, value, bytes); }              \\
    void __aeabi_memclr##suffix(void *to, size_t bytes);                                                      \\
    void __aeabi_memclr##suffix(void *to, size_t bytes) { memset(to, 0, bytes); }
WP_COPIES()
WP_COPIES(4)
WP_COPIES(8)
#endif
"""


_CONSTRUCT = """\
    for (wp_constructor *const *run = __init_array_start; run != __init_array_end; run++)
        (*run)();"""
"""Before the allocator's own init: what a program's start-up code does before ``main``."""

_CONSTRUCTORS = """\
typedef void wp_constructor(void);
extern wp_constructor *const __init_array_start[], *const __init_array_end[];"""

_LIBRARY = """
#include <stddef.h>
/* How a C library ends a program, by the names of musl and newlib: nothing comes back, and no bound counts it. What the
 * allocator brings of these names is taken instead. */
#define WP_END __attribute__((weak, noreturn)) void
#define WP_FOREVER { for (;;) __asm__ volatile(""); }
WP_END abort(void) WP_FOREVER
WP_END exit(int status) WP_FOREVER
WP_END _exit(int status) WP_FOREVER
WP_END __assert_fail(const char *what, const char *file, int line, const char *function) WP_FOREVER
WP_END __assert_func(const char *file, int line, const char *function, const char *what) WP_FOREVER
WP_END __stack_chk_fail(void) WP_FOREVER

/* Where errno is. */
static int wp_errno;
#define WP_ERRNO __attribute__((weak)) int *
WP_ERRNO __errno_location(void) { return &wp_errno; }
WP_ERRNO __errno(void) { return &wp_errno; }
WP_ERRNO __aeabi_errno_addr(void) { return &wp_errno; }

/* What compilers call as they call memcpy, and asserts and checks of heaps by name. */
__attribute__((weak)) int memcmp(const void *one, const void *other, size_t bytes)
{
    const unsigned char *a = one, *b = other;
    for (; bytes; a++, b++, bytes--)
        if (*a != *b)
            return *a < *b ? -1 : 1;
    return 0;
}
__attribute__((weak)) size_t strlen(const char *text)
{
    const char *end = text;
    while (*end)
        end++;
    return (size_t)(end - text);
}

/* What C++ needs without exceptions, by the names of its ABI: no destructor of a static object runs, and statics of
 * functions are made once, by their first call. */
__attribute__((weak)) void *__dso_handle;
WP_END __cxa_pure_virtual(void) WP_FOREVER
#define WP_NEVER __attribute__((weak)) int
WP_NEVER atexit(void (*end)(void)) { (void)end; return 0; }
#define WP_UNUSED { (void)end, (void)object, (void)handle; return 0; }
WP_NEVER __cxa_atexit(void (*end)(void *), void *object, void *handle) WP_UNUSED
WP_NEVER __aeabi_atexit(void *object, void (*end)(void *), void *handle) WP_UNUSED
__attribute__((weak)) int __cxa_guard_acquire(unsigned char *made) { return !*made; }
__attribute__((weak)) void __cxa_guard_release(unsigned char *made) { *made = 1; }
"""


@dataclass(frozen=True, slots=True)
class Calls:
    """How an allocator is called, as C: the tables ``call`` and ``heap`` of its manifest.

    Attributes:
        include: headers with the prototypes.
        declarations: C that is put before the calls.
        handle: type of the variable ``handle``; empty if there is none.
        init: statement with ``arena``, ``bytes``, ``end``; empty where the allocator begins with its first call.
        ready: condition that holds once ``init`` has succeeded.
        malloc: expression with ``size``, and with ``cache_set`` if it takes one; its value is the block, unless
            ``is_out``.
        is_out: whether the block is in the variable ``result`` afterwards, and NULL if it was left as it was.
        free: expression with ``pointer``, and with ``size`` if it takes what malloc was asked for; empty where
            nothing is ever given back.
        check: expression that is 0 where the heap's invariants hold; empty if there is none.
        grows: whether the allocator asks for its memory by ``sbrk``, ``_sbrk`` or ``brk``.
        in_cpp: whether the calls are in C++.
        constructs: whether functions that run before ``main`` may be among its code.
    """

    include: tuple[str, ...]
    declarations: str
    handle: str
    init: str
    ready: str
    malloc: str
    is_out: bool
    free: str
    check: str
    grows: bool
    in_cpp: bool = False
    constructs: bool = False

    @property
    def takes_cache_set(self) -> bool:
        """Whether malloc is told the cache set of the block."""
        return says(self.malloc, "cache_set")

    @property
    def free_takes_size(self) -> bool:
        """Whether free is told the bytes that the block was asked for."""
        return says(self.free, "size")


def entry_points(calls: Calls) -> dict[str, str]:
    """The C symbol of each role: the allocator's own where it needs nothing besides its one argument."""
    direct = {role: _direct(calls, role) for role in _DIRECT}
    return {"init": "wp_init", "check": "wp_check"} | {role: name or f"wp_{role}" for role, name in direct.items()}


def adapter_sources(name: str, calls: Calls, stubs: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The files that are made for the allocator ``name``, as file name and text.

    Parameters:
        name: of the allocator.
        calls: how it is called.
        stubs: functions that do nothing and return 0.
    """
    head = _HEAD.format(name=name)
    support = f"{head}#include <stddef.h>\n{_SBRK if calls.grows else ''}{_ARM_RUNTIME}"
    bodies = "".join(f"int {stub}(void);\nint {stub}(void)\n{{\n    return 0;\n}}\n" for stub in stubs)
    made = [
        (CPP_ADAPTER if calls.in_cpp else ADAPTER, _adapter(head, calls)),
        (SUPPORT, support),
        (LIBRARY, f"{head}{_LIBRARY}"),
    ]
    return (*made, (STUBS, f"{head}{bodies}")) if stubs else tuple(made)


def _direct(calls: Calls, role: str) -> str | None:
    # Names and arguments of C++ are not what they are in C, so that such a call is always made by a function.
    if calls.in_cpp or calls.handle or (role == "malloc" and calls.is_out):
        return None
    found = _DIRECT[role].fullmatch({"malloc": calls.malloc, "free": calls.free}[role].strip())
    return found[1] if found else None


def _adapter(head: str, calls: Calls) -> str:
    entries = entry_points(calls)
    lines = [head.rstrip(), "#include <stddef.h>", "#include <stdint.h>"]
    lines += [f'#include "{file}"' for file in calls.include]
    lines += [calls.declarations.strip()] if calls.declarations.strip() else []
    if calls.handle:
        lines += [f"{calls.handle} wp_handle;", "#define handle wp_handle"]
    lines += ['extern "C" {'] if calls.in_cpp else []
    lines += ["extern unsigned char *wp_break, *wp_limit;"] if calls.grows else []
    lines += [_CONSTRUCTORS] if calls.constructs else []
    lines += ["int wp_init(void *arena, size_t bytes);", "int wp_check(void);", ""]
    lines += [
        "int wp_init(void *arena, size_t bytes)",
        "{",
        "    unsigned char *const end = (unsigned char *)arena + bytes;",
    ]
    lines += ["    (void)end;"]
    lines += ["    wp_break = (unsigned char *)arena;", "    wp_limit = end;"] if calls.grows else []
    lines += [_CONSTRUCT] if calls.constructs else []
    lines += [f"    {calls.init.strip().rstrip(';')};"] if calls.init.strip() else []
    lines += [f"    return !({calls.ready});" if calls.ready else "    return 0;", "}", ""]
    for role, argument in (("malloc", "(size_t)0"), ("free", "(void *)0")):
        if not calls.takes_cache_set and entries[role] != f"wp_{role}":
            lines += _PLAIN.format(name=entries[role], argument=argument).splitlines()
    if entries["malloc"] == "wp_malloc":
        body = [f"    return {calls.malloc};"]
        if calls.is_out:
            body = ["    void *result = NULL;", f"    (void)({calls.malloc});", "    return result;"]
        made = f"void *wp_malloc(size_t size{', uint32_t cache_set' if calls.takes_cache_set else ''})"
        lines += [f"{made};", f"{_APART}{made}", "{", _CALLED, *body, "}", ""]
    if entries["free"] == "wp_free":
        made = f"void wp_free(void *pointer{', size_t size' if calls.free_takes_size else ''})"
        lines += [f"{made};", f"{_APART}{made}", "{", _CALLED, f"    {calls.free or '(void)pointer'};", "}", ""]
    lines += ["int wp_check(void)", "{", f"    return {calls.check or '0'};", "}", ""]
    cache_set = ", operation->cache_set" if calls.takes_cache_set else ""
    told = _TOLD if calls.free_takes_size else dict.fromkeys(_TOLD, "")
    lines.append(_REPLAY.format(malloc=entries["malloc"], free=entries["free"], cache_set=cache_set, **told))
    lines += ["}"] if calls.in_cpp else []
    return "\n".join(lines)
