"""A changed result of `bound` with the digest of what it says now, as a forger makes it, and how `verify` takes it."""

import json

from wcet_probe.certificate.kernel.verify import bound_digest
from wcet_probe.cli import main


def reseal(document, file):
    document["bound"]["digest"] = bound_digest(document["bound"])
    file.write_text(json.dumps(document))


def verified(folder, document, capsys, *given):
    """Exit code and output of `verify` in ``folder``, with its firmware.elf and what is ``given``, or facts.toml."""
    reseal(document, folder / "f.json")
    code = main(["verify", "f.json", "--image", "firmware.elf", *(given or ("--facts", "facts.toml"))])
    found = capsys.readouterr()
    return code, found.out + found.err
