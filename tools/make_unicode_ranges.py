"""Writes src/text/unicode_ranges.def: which code points are letters (L), numbers (N) and white space, as ranges.

    python3 tools/make_unicode_ranges.py > src/text/unicode_ranges.def

The version of Unicode is that of Python's unicodedata, or of the package unicodedata2 if it is installed. White space
is the property White_Space, which unicodedata does not have. It has not changed for many versions: SPACES lists it.
"""

try:
    import unicodedata2 as unicodedata
except ImportError:
    import unicodedata

SPACES = {0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000, *range(0x09, 0x0E), *range(0x2000, 0x200B)}
NAMES = {"L": "LETTER", "N": "NUMBER"}


def kind(code):
    return "SPACE" if code in SPACES else NAMES.get(unicodedata.category(chr(code))[0])


def ranges():
    first, last_kind = 0, None
    for code in range(0x110001):
        now = kind(code) if code < 0x110000 else None
        if now != last_kind:
            if last_kind:
                yield f"RANGE(0x{first:04X}, 0x{code - 1:04X}, {last_kind})"
            first, last_kind = code, now


print(f"/* Unicode {unicodedata.unidata_version}; written by tools/make_unicode_ranges.py. A row is a range: first, last, kind. */")
line = ""
for row in ranges():
    if len(line) + len(row) + 1 > 120:
        print(line)
        line = ""
    line += (" " if line else "") + row
print(line)
