"""Packs for tests: of results as the command prints them, and changed ones."""

import json

import pytest

from tests.support import images_dir
from wcet_probe.certificate.kernel.verify import bound_digest
from wcet_probe.cli import main
from wcet_probe.evidence.audit import audit
from wcet_probe.evidence.container import pack_bytes


def run(target, *options, allocator="tlsf"):
    """What ``wcet-probe ALLOCATOR --json`` prints."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WCET_PROBE_CACHE_DIR", str(images_dir()))
        printed = []
        patch.setattr("wcet_probe.cli.streams.print_json", printed.append)
        assert main([allocator, "--heap", "8K", "--target", target, "--json", *options]) == 0
    return json.dumps(printed[0]).encode()


def failure(members, **options):
    """The first error of an audit of the pack of ``members``, or None."""
    return next((check.error for check in audit(pack_bytes(members), **options) if check.error), None)


def rows(members):
    return {check.check: check for check in audit(pack_bytes(members), replayed=False)}


def tampered(members, name, change):
    """The members with ``name`` changed as a whole and consistently: the manifest is made anew."""
    changed = change(members[name])
    assert changed != members[name]
    return {**members, name: changed}


def edited(change):
    """Changes the JSON document of a member by ``change``, and makes the digest of its bound right again."""

    def edit(content):
        document = json.loads(content)
        change(document)
        if document.get("bound"):
            document["bound"]["digest"] = bound_digest(document["bound"])
        return json.dumps(document).encode()

    return edit
