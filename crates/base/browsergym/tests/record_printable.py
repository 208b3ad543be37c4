"""Writes src/printable.rs from what this Python (3.12: Unicode 15.0) calls printable."""

import pathlib

edges, before = [], False
for code in range(0x110000):
    printable = chr(code).isprintable()
    if printable != before:
        edges.append(code)
        before = printable
rows, line = [], "   "
for edge in edges:
    text = f" {edge:#x},"
    if len(line) + len(text) > 119:
        rows.append(line)
        line = "   "
    line += text
rows.append(line)
table = "\n".join(rows)
target = pathlib.Path(__file__).parent.parent / "src" / "printable.rs"
target.write_text(f"""//! Which characters Python 3.12 (Unicode 15.0) writes as they are in a `repr`.
//!
//! The table is what `str.isprintable` answers for every code point (tests/record_printable.py); Unicode after 15.0
//! has more printable characters.

/// Whether Python's `repr` leaves `c` unescaped.
pub(crate) fn is_printable(c: char) -> bool {{
    EDGES.partition_point(|&edge| edge <= u32::from(c)) % 2 == 1
}}

/// Where the answer changes: characters below the first edge are not printable, those from it to the second are, …
static EDGES: [u32; {len(edges)}] = [
{table}
];
""")
