#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The ELF kernel inside a bzImage (Documentation/arch/x86/boot.rst): booted as it is (PVH) it saves
the guest the decompression.

usage: vmlinux.py BZIMAGE VMLINUX
"""
import lzma
import struct
import subprocess
import sys


def main():
    with open(sys.argv[1], "rb") as f:
        image = f.read()
    if image[0x202:0x206] != b"HdrS"[0:4]:
        sys.exit(f"{sys.argv[1]}: not a bzImage")
    setup = (image[0x1F1] or 4) + 1
    offset, length = struct.unpack_from("<II", image, 0x248)
    payload = image[setup * 512 + offset:][:length]
    if payload.startswith(b"\xfd7zXZ"):
        # The size of what is inside follows, and is no part of the stream.
        elf = lzma.LZMADecompressor().decompress(payload)
    elif payload.startswith(b"\x28\xb5\x2f\xfd"):
        elf = subprocess.run(["zstd", "-qdc"], input=payload[:-4], stdout=subprocess.PIPE,
                             check=True).stdout
    else:
        sys.exit(f"{sys.argv[1]}: its payload is neither xz nor zstd")
    if not elf.startswith(b"\x7fELF"):
        sys.exit(f"{sys.argv[1]}: there is no ELF kernel inside")
    with open(sys.argv[2], "wb") as f:
        f.write(elf)


if __name__ == "__main__":
    main()
