"""A dossier with every kind of block, in the sizes that break layouts."""

from wcet_probe.reports.dossier.blocks import Blank, Code, Dossier, Figure, Items, KeyValues, Paragraph, Section, Table

HASH = "3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b"
HOSTILE = (
    'a < b && c > d "quoted" #emph[x] $y_1$ *bold* _under_ <script>alert(1)</script> \\ @label {{ 7 * 7 }} // -- ~'
)
SIGNS = "▒ █ ≤ ≥ \u00d7 → · ⌊H/2M⌋ 1\u2009024 1\u202f024 … µ ∈ ∞ ≈ ✓"
LONG_LINE = f"80000120: lwz r9, 0x14(r3)  ; {'x' * 58} |"
LONG_TEXT = (
    "The free list is walked until a block is found that is large enough, and the walk ends at the sentinel, "
    "because `block_locate_free` starts at the class above the one that is asked for. "
)
FEW = Items((LONG_TEXT, f"`{HASH}`", "short"))


def picture(name: str, width: int = 720, height: int = 320) -> str:
    bars = "".join(
        f'<rect x="{60 + 60 * i}" y="{height - 40 - 20 * i}" width="40" height="{20 * i}" fill="url(#shade)"/>'
        f'<text x="{80 + 60 * i}" y="{height - 20}" text-anchor="middle">{2**i} kB</text>'
        for i in range(1, 10)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12" fill="currentColor">'
        '<defs><linearGradient id="shade"><stop stop-color="#0072b2"/><stop offset="1" stop-color="#56b4e9"/>'
        f'</linearGradient></defs><text x="20" y="24" font-size="14">{name}: cycles</text>{bars}</svg>'
    )


def sample() -> Dossier:
    wide = Table(
        "All operations, with every count (twelve columns)",
        ("operation", *(f"count of kind {i}" for i in range(1, 12))),
        tuple((f"op_{row}", *(f"{(row + 1) * 1234567 * (i + 1):,}" for i in range(11))) for row in range(70)),
        "c" + "r" * 11,
    )
    assumptions = Table(
        "Assumptions, who discharges them, and what follows if they are false",
        ("id", "assumption", "source", "discharged by", "how it is checked", "if it is false"),
        tuple(
            (f"A-{row:02}", LONG_TEXT, "`targets/mpc603e.toml`", "integrator", LONG_TEXT * (1 + row % 2), HOSTILE)
            for row in range(8)
        ),
        "llllll",
    )
    hashes = Table(
        "Files of the evidence",
        ("file", "sha256", "bytes"),
        (
            ("allocators/tlsf/src/a_rather_long_folder_name/tlsf_with_a_long_name.c", HASH, "12,345"),
            ("short.c", HASH, "9"),
        ),
        "ccr",
    )
    return Dossier(
        "WCET dossier: tlsf on mpc603e",
        "Bound and witness of `malloc` and `free`, heap 64 KiB",
        (
            Section(
                "Identification",
                "identification",
                (
                    Paragraph("The bound of `malloc` is 1,234 cycles; nothing that was run took longer.", "lead"),
                    KeyValues(
                        (
                            ("image", f"`{HASH}`"),
                            (
                                "command",
                                "`wcet-probe report tlsf --target mpc603e --heap 64KiB --scenario free-list -o out/`",
                            ),
                            ("signs", SIGNS),
                            ("approved by", ""),
                        )
                    ),
                    Blank("Name and part number of the item, as in the configuration index"),
                    hashes,
                ),
            ),
            Section(
                "Assumptions & restrictions <all of them>",
                "assumptions",
                (
                    Paragraph(LONG_TEXT * 3),
                    assumptions,
                    Paragraph(HOSTILE, "note"),
                    FEW,
                ),
                (
                    Section(
                        "Flow facts of `block_locate_free`",
                        "flow",
                        (Paragraph(LONG_TEXT), wide),
                        (Section("Deep down", "deep", (Paragraph(LONG_TEXT),)),),
                    ),
                    Section("Pictures", "pictures", tuple(_figures())),
                ),
            ),
            Section(
                "Worst path",
                "path",
                (
                    Code("The worst path, in assembler", "\n".join([LONG_LINE, "  indented", "", *[LONG_LINE] * 90])),
                    Code("", f"one line of {HASH * 3} and words " + "to wrap " * 20),
                ),
            ),
            Section(
                "Sign-off", "sign-off", (Blank("Name, role, date and signature of the `author`"), Blank(LONG_TEXT))
            ),
        ),
    )


def _figures() -> list[Figure]:
    return [
        Figure("Cycles against the size of the heap", "Bars that grow with the heap", picture("growth")),
        Figure(f"Another {SIGNS}", 'Bars with "quotes" & <signs>', picture("again")),
        Figure("A tall one", "A tall column of bars", picture("tall", 720, 1400)),
    ]
