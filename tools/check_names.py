"""Checks names in src/ and include/:

  types     a type has one definition; two files may define a name without cn_, but not two headers
  headers   no header has the name of a header of the C library, of POSIX or of a common system
  helpers   no small function occurs in several files (unless it uses other functions of its file)

Prints each problem, and exits with 1 if there is one.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SYSTEM_HEADERS = set("""
    aio alloca ar argp argz arpa assert byteswap complex cpio crypt ctype dirent dlfcn elf endian envz err errno error
    execinfo fcntl features fenv float fmtmsg fnmatch fts ftw getopt glob grp gshadow iconv ifaddrs inttypes iso646
    langinfo libgen libintl limits link locale malloc math mcheck memory memory_resource mntent monetary mqueue ndbm
    netdb new nl_types nss obstack paths poll printf proc_service pthread pty pwd random re_comp regex regexp resolv
    sched search semaphore setjmp sgtty shadow signal spawn stab stdalign stdarg stdatomic stdbool stdbit stdckdint
    stddef stdint stdio stdio_ext stdlib stdnoreturn string strings stropts syscall sysexits syslog tar termio termios
    tgmath thread threads time trace uchar ucontext ulimit unistd utime utmp utmpx values version wait wchar wctype
    windows wordexp zlib
""".split())

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'')
TAGGED = re.compile(r"\b(?:struct|union|enum)\s+(\w+)\s*\{")
TYPEDEF = re.compile(r"\btypedef\b")
FUNCTION = re.compile(r"^static (?:inline )?[\w *]+?\b(\w+)\(([^;{}]*)\)\s*\{", re.M)
VARIABLE = re.compile(r"^(?:static|enum|const)\b[\w *]*?\b(\w+)(?:\[[^\n]*)? =\s", re.M)
UTIL = "src/core/util.h"  # the place of these helpers, as cn__NAME
HELPERS = {"align_up", "clamp", "divide_up", "larger", "max", "min", "round_up", "smaller"}
SMALL = 200  # characters of a body; longer functions with the same name are not compared


def blank(found):
    return re.sub(r"[^\n]", " ", found.group())


def code_of(text):
    """The text without comments, strings and preprocessor lines, with every character where it was."""
    text = COMMENT.sub(blank, text)
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", blank, text, flags=re.M)
    return re.sub(r"__attribute__\(\(.*?\)\)+", blank, STRING.sub(blank, text))


def after_braces(text, at):
    """The position after the block whose opening brace is at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i + 1
    return len(text)


def typedef_name(text, start):
    """(name, whether this defines it) of the typedef at `start`: `typedef struct x x;` only declares it."""
    at = re.compile("[;{]").search(text, start).start()
    behind = after_braces(text, at) if text[at] == "{" else at
    declaration = text[start:at] + text[behind : text.find(";", behind)]
    pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", declaration)
    words = re.findall(r"\w+", re.sub(r"\[[^\]]*\]", "", declaration))
    name = pointer.group(1) if pointer else words[-1]
    forward = re.fullmatch(r"typedef\s+(?:struct|union|enum)\s+(\w+)\s+\**\s*(\w+)\s*", declaration)
    return name, not (forward and forward.group(1) == forward.group(2))


def definitions(text):
    """(name, offset) of each type that the text defines. A tag and the typedef of the same name are one definition."""
    found = {}
    for match in TAGGED.finditer(text):
        found[match.group(1)] = match.start()
    names = [(name, match.start()) for match in TYPEDEF.finditer(text)
             for name, defines in [typedef_name(text, match.start())] if defines]
    twice = [(name, at) for i, (name, at) in enumerate(names) if name in dict(names[:i])]
    return [*{**dict(names), **found}.items(), *twice]


def places(path, text, at):
    return f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, at) + 1}"


def check_types(sources):
    where = defaultdict(list)
    for path, text in sources.items():
        guarded = path.suffix == ".h" and "#ifndef C" in path.read_text(encoding="utf-8")  # else a template
        for name, at in definitions(text):
            if name.startswith("cn_") or guarded:
                where[name].append(places(path, text, at))
    for name, found in sorted(where.items()):
        if len(found) > 1:
            yield f"type {name} has {len(found)} definitions: {', '.join(found)}"


def check_headers(sources):
    for path in sources:
        if path.suffix == ".h" and path.stem in SYSTEM_HEADERS:
            yield f"{path.relative_to(ROOT)}: has the name of a system header"


def check_helpers(sources):
    where = defaultdict(list)
    for path, text in sources.items():
        whole = path.read_text(encoding="utf-8")
        bodies = {m: text[m.end() - 1 : after_braces(text, m.end() - 1)] for m in FUNCTION.finditer(text)}
        own = {m.group(1) for m in bodies if not m.group(1).startswith("cn_")} | set(VARIABLE.findall(text))
        for match, body in bodies.items():
            if len(body) <= SMALL and not own & set(re.findall(r"\w+", body)):
                same = re.sub(r"\s+", " ", whole[match.start(2) : match.end() - 1 + len(body)])
                where[match.group(1), same].append(places(path, text, match.start()))
            if match.group(1) in HELPERS:
                yield f"{places(path, text, match.start())}: {match.group(1)} belongs to {UTIL}, as cn__{match.group(1)}"
    for (name, _), found in sorted(where.items()):
        if len(found) > 1 and name not in HELPERS:
            yield f"function {name} occurs in {len(found)} files: {', '.join(found)}"


def main():
    paths = [p for folder in ("src", "include") for p in sorted((ROOT / folder).rglob("*.[ch]"))]
    sources = {path: code_of(path.read_text(encoding="utf-8")) for path in paths}
    found = [*check_types(sources), *check_headers(sources), *check_helpers(sources)]
    print("\n".join(found) if found else f"names in {len(sources)} files are used once each")
    return 1 if found else 0


sys.exit(main())
