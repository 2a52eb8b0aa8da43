"""The ``--cache`` option: refine the caches of a target for one run.

Grammar::

    SPEC     = [ ("i" | "d" | "both" | "u") ":" ] ( "none" | SETTING { "," SETTING } )
    SETTING  = "size=" SIZE | "sets=" N | "ways=" N | "line=" SIZE
             | "policy=" ("lru" | "fifo" | "plru" | "random" | "round-robin")
             | "write=" ("back" | "through") | "allocate=" ("yes" | "no") | "seed=" N

Without prefix both caches are meant. Geometry: size = sets x ways x line. Three of the four fix the fourth; where fewer
are given, the target's line, then its ways, then its size are kept. So ``size`` and ``ways`` change the sets, ``sets``
changes the size, and ``size`` with ``sets`` changes the ways. A cache that the target does not have needs three of the
four; its policy is then LRU, write-back, write-allocate. ``write`` and ``allocate`` speak of the data cache only.

``u`` means one cache that serves fetches and data accesses. It refines the target's unified cache, and there no prefix
and ``both`` mean the same. On a target with separate caches it puts one in their place; what is not given is that of
the data cache. ``i`` and ``d`` are refused where the cache is unified.
"""

from __future__ import annotations

from dataclasses import replace

from wcet_probe.errors import UsageError, unknown_name
from wcet_probe.model.target import Basis, CacheConfig, Replacement, Target, without_caches
from wcet_probe.sizes import format_size, parse_size

_CACHES = {"i": ("icache",), "d": ("dcache",), "both": ("icache", "dcache"), "u": ("dcache",)}
_TITLES = {"icache": "instruction cache", "dcache": "data cache"}
_WORDS = {
    "policy": tuple(policy.value for policy in Replacement),
    "write": ("back", "through"),
    "allocate": ("yes", "no"),
}
_DATA_ONLY = frozenset({"write", "allocate"})
_KEYS = ("size", "sets", "ways", "line", "policy", "write", "allocate", "seed")
_KEPT = ("line", "ways", "size")
_LARGEST_BYTES = 64 << 20
_EXAMPLE = "d:size=16KiB,ways=4,line=32"


def apply_cache_option(target: Target, text: str) -> Target:
    """``target`` with its caches refined as the SPEC ``text`` says; a cache that is changed has the basis ``assumed``.

    Raises:
        UsageError: ``text`` is no SPEC, or there can be no such cache.
    """
    prefix, colon, rest = text.partition(":")
    which, spec = (prefix, rest) if colon else ("both", text)
    if which not in _CACHES:
        raise unknown_name("cache", which, _CACHES)
    if which == "u" or target.unified_cache:
        return _with_unified(target, which, spec, text)
    if spec == "none":
        for name in _CACHES[which]:
            target = _with_cache(target, name, None)
        return target
    settings = _settings(spec)
    if which == "i" and (wrong := settings.keys() & _DATA_ONLY):
        raise UsageError(f"an instruction cache has no {min(wrong)!r}: say d: instead of i: in --cache {text}.")
    for name in _CACHES[which]:
        own = {key: value for key, value in settings.items() if name == "dcache" or key not in _DATA_ONLY}
        if own:
            target = _with_cache(target, name, _refined(target, name, own, text))
    return target


def _with_unified(target: Target, which: str, spec: str, text: str) -> Target:
    """``target`` with one cache, that of ``spec``, for fetches and data accesses."""
    if which in ("i", "d"):
        message = f"{target.name} has one cache for both: say u: instead of {which}: in --cache {text}."
        raise UsageError(message)
    if spec == "none":
        return without_caches(target)
    cache = _refined(target, "dcache", _settings(spec), text)
    return replace(target, icache=cache, dcache=cache, unified_cache=True)


def _with_cache(target: Target, name: str, cache: CacheConfig | None) -> Target:
    return replace(target, icache=cache) if name == "icache" else replace(target, dcache=cache)


def _settings(spec: str) -> dict[str, str]:
    settings: dict[str, str] = {}
    for item in spec.split(","):
        key, _, value = item.partition("=")
        if item == "none":
            raise UsageError("none stands alone: write --cache i:none or --cache d:none, and other settings apart.")
        if key not in _KEYS:
            raise unknown_name("cache setting", key, (*_KEYS, "none"))
        if not value or key in settings:
            raise UsageError(f"cache setting {key!r} needs one value: write it like --cache {_EXAMPLE}.")
        if key in _WORDS and value not in _WORDS[key]:
            raise unknown_name(f"cache {key}", value, _WORDS[key])
        settings[key] = value
    return settings


def _refined(target: Target, name: str, settings: dict[str, str], text: str) -> CacheConfig:
    old: CacheConfig | None = getattr(target, name)
    given = {key: _number(key, value) for key, value in settings.items() if key not in _WORDS}
    seed = given.pop("seed", old.seed if old else 0)
    for key in _KEPT:
        if old and len(given) < 3 and key not in given:
            given[key] = {"line": old.line_bytes, "ways": old.ways, "size": old.size_bytes}[key]
    if len(given) < 3:
        message = f"{target.name} has no {_TITLES[name]}: give its size, ways and line, like --cache {_EXAMPLE}."
        raise UsageError(message)
    sets, ways, line_bytes = _geometry(given, _TITLES[name])
    replacement = Replacement(settings.get("policy", old.replacement if old else Replacement.LRU))
    if replacement is Replacement.PLRU and ways & (ways - 1):
        raise UsageError(f"a plru cache needs ways that are a power of two, not {ways}: add ways=N to --cache {text}.")
    return CacheConfig(
        sets=sets,
        ways=ways,
        line_bytes=line_bytes,
        replacement=replacement,
        write_back=settings["write"] == "back" if "write" in settings else old.write_back if old else name == "dcache",
        write_allocate=settings["allocate"] == "yes"
        if "allocate" in settings
        else old.write_allocate
        if old
        else name == "dcache",
        seed=seed,
        basis=Basis.ASSUMED,
        source=f"{old.source}; changed by --cache {text}" if old else f"--cache {text}",
    )


def _number(key: str, text: str) -> int:
    if key in ("size", "line"):
        return parse_size(text)
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise UsageError(f"cache setting {key}={text} must be a whole number: write it like {key}=4.")
    return int(text)


def _geometry(given: dict[str, int], title: str) -> tuple[int, int, int]:
    """Sets, ways and bytes of a line from at least three of size, sets, ways and line."""
    if 0 in given.values():
        raise UsageError(f"no size, sets, ways or line of the {title} can be 0: use none for no cache.")
    for what in ("sets", "line"):
        if given.get(what, 1) & (given.get(what, 1) - 1):
            raise UsageError(f"{what} of the {title} must be a power of two, not {given[what]}: change {what}.")
    size_bytes = given.get("size") or given["sets"] * given["ways"] * given["line"]
    sets = given.get("sets") or size_bytes // (given["ways"] * given["line"])
    ways = given.get("ways") or size_bytes // (sets * given["line"])
    line_bytes = given.get("line") or size_bytes // (sets * ways)
    product = f"{sets} sets x {ways} ways x {line_bytes} bytes"
    if sets * ways * line_bytes != size_bytes:
        message = (
            f"the {title} of {format_size(size_bytes)} is not {product}: give values that agree; "
            "the number of sets is to be a power of two."
        )
        raise UsageError(message)
    for what, value in (("sets", sets), ("line", line_bytes)):
        if value & (value - 1):
            raise UsageError(f"the {title} has {product}, but {what} must be a power of two: change {what} or size.")
    if line_bytes < 4 or size_bytes > _LARGEST_BYTES:
        raise UsageError(f"the {title} has {product}, but a line has at least 4 bytes and a cache at most 64 MiB.")
    return sets, ways, line_bytes
