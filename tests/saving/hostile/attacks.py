"""Attacks on files of format 2, each with checksums and digests that are right.

An attack is a name and a function that makes the bytes of a file of those of a sound one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from fuzz.files.headers import Headers, Message
from rewriting import Draft

from gradtape.saving.container.hdf5 import profile as p
from gradtape.saving.container.hdf5.profile import checksum
from gradtape.saving.container.hdf5.write import to_bytes

Attack = Callable[[bytes], bytes]

LARGE = [2**16 - 1, 2**31 - 1, 2**32 - 1, 2**40, 2**47, 2**48 - 1, 2**62, 2**63, 2**64 - 1]
NAMES = [
    b"",
    b".",
    b"..",
    b"a/b",
    b"/",
    b"\xff\xfe",
    b"na\xc3\xafve",
    b"a\nb",
    b"a\0b",
    b" x",
    b"x ",
    b"-x",
    b".x",
    b"\x1b[2J",
    b"x" * 129,
    b"x" * 255,
    b"manifest",
    b"digests",
    b"variables",
    b"functions",
]


def changed(change: Callable[[Headers], Any]) -> Attack:
    """Return an attack that changes the headers in parts."""

    def attack(data: bytes) -> bytes:
        headers = Headers(data)
        change(headers)
        return headers.encoded()

    return attack


def _kinds(data: bytes) -> dict[str, int]:
    """Return one object of each kind that the file has, by what it is."""
    headers = Headers(data)
    found = {"root": 0}
    for i, messages in enumerate(headers.objects[1:], 1):
        kinds = [m.kind for m in messages]
        if p.LAYOUT not in kinds:
            found.setdefault("a group", i)
        elif p.FILTERS in kinds:
            found.setdefault("a compressed dataset", i)
        else:
            datatype = next(m.data for m in messages if m.kind == p.DATATYPE)
            shape = next(m.data for m in messages if m.kind == p.DATASPACE)
            found.setdefault(f"a dataset of class {datatype[0] & 15}, rank {shape[1]}", i)
    return found


def header_attacks(data: bytes) -> Iterator[tuple[str, Attack]]:
    """Yield each field of each message of one object of each kind, with each of many values."""
    headers = Headers(data)
    for label, i in _kinds(data).items():
        for j, message in enumerate(headers.objects[i]):
            where = f"{label}, message {j} of kind {message.kind}"
            places = range(min(len(message.data), 24))
            for at in places:
                for value in (0, 255, (message.data[at] + 1) % 256):
                    yield f"{where}: byte {at} is {value}", changed(_put(i, j, at, 1, value))
            for at in range(0, max(0, min(len(message.data), 40) - 7), 3):
                for value in LARGE[1::2]:
                    yield f"{where}: number at {at} is {value}", changed(_put(i, j, at, 8, value))
            for kind in (0, 7, 12, 13, 16, 17, 22, 24):
                yield f"{where}: kind {kind}", changed(_set(i, j, "kind", kind))
            for flags in (1, 2, 128):
                yield f"{where}: flags {flags}", changed(_set(i, j, "flags", flags))
            for size in (0, 1, len(message.data) - 1, len(message.data) + 1, 65535):
                yield f"{where}: size {size}", changed(_set(i, j, "size", size))
            yield f"{where}: twice", changed(_twice(i, j))
            yield f"{where}: missing", changed(_missing(i, j))
            yield f"{where}: cut", changed(_resized(i, j, -1))
            yield f"{where}: longer", changed(_resized(i, j, 1))


def _put(i: int, j: int, at: int, width: int, value: int) -> Callable[[Headers], None]:
    def change(headers: Headers) -> None:
        message = headers.objects[i][j]
        new = value.to_bytes(width, "little")
        message.data = message.data[:at] + new + message.data[at + width :]

    return change


def _set(i: int, j: int, name: str, value: int) -> Callable[[Headers], None]:
    return lambda headers: setattr(headers.objects[i][j], name, value)


def _twice(i: int, j: int) -> Callable[[Headers], None]:
    def change(headers: Headers) -> None:
        message = headers.objects[i][j]
        headers.objects[i].insert(j, Message(message.kind, message.data))

    return change


def _missing(i: int, j: int) -> Callable[[Headers], None]:
    def change(headers: Headers) -> None:
        del headers.objects[i][j]

    return change


def _resized(i: int, j: int, by: int) -> Callable[[Headers], None]:
    def change(headers: Headers) -> None:
        message = headers.objects[i][j]
        message.data = message.data[:by] if by < 0 else message.data + bytes(by)

    return change


# -- links -----------------------------------------------------------------------------------------


def link_attacks(data: bytes) -> Iterator[tuple[str, Attack]]:
    """Yield links that lead elsewhere, are of other kinds, or have other names."""
    headers = Headers(data)
    links = [
        (i, j)
        for i, messages in enumerate(headers.objects)
        for j, message in enumerate(messages)
        if message.kind == p.LINK
    ]
    for i, j in [*links[:3], links[-1]]:
        for target in [*range(len(headers.objects)), *LARGE]:
            yield f"link {i}.{j} to {target}", changed(_led(i, j, target))
        for name in NAMES:
            yield f"link {i}.{j} named {name!r}", changed(_named(i, j, name))
        for kind, rest in (
            ("soft", b"\1" + b"\4\0/etc"),
            ("external", b"\x40" + b"\x0b\0\0a.h5\0/w\0\0"),
            ("user-defined", b"\x41" + b"\4\0abcd"),
        ):
            yield f"link {i}.{j}, {kind}", changed(_other(i, j, rest[0], rest[1:]))
        for flags in (1, 4, 8, 16, 31):
            yield f"link {i}.{j} with flags {flags}", changed(_put(i, j, 1, 1, flags))
    yield "a cycle of the root", changed(_led(0, links[0][1], 0))
    yield "a group in itself", changed(_added(links, b"again"))
    for count in (9, 20_000):
        yield f"{count} links to one object", changed(_many(count, same=True))
        yield f"{count} links of one name", changed(_many(count, same=False))


def _led(i: int, j: int, target: int) -> Callable[[Headers], None]:
    def change(headers: Headers) -> None:
        message = headers.objects[i][j]
        message.data = message.data[:-8] + struct.pack("<Q", target)

    return change


def _named(i: int, j: int, name: bytes) -> Callable[[Headers], None]:
    def change(headers: Headers) -> None:
        message = headers.objects[i][j]
        message.data = struct.pack("<BBB", 1, 0, len(name)) + name + message.data[-8:]

    return change


def _other(i: int, j: int, kind: int, rest: bytes) -> Callable[[Headers], None]:
    def change(headers: Headers) -> None:
        message = headers.objects[i][j]
        name = message.data[3:-8]
        message.data = struct.pack("<BBBB", 1, 8, kind, len(name)) + name + rest

    return change


def _added(links: list[tuple[int, int]], name: bytes) -> Callable[[Headers], None]:
    def change(headers: Headers) -> None:
        i = next(i for i, _ in links if i)
        data = struct.pack("<BBB", 1, 0, len(name)) + name + struct.pack("<Q", i)
        headers.objects[i].append(Message(p.LINK, data))

    return change


def _many(count: int, same: bool) -> Callable[[Headers], None]:
    def change(headers: Headers) -> None:
        for k in range(count):
            name = b"n%d" % k if same else b"n"
            data = struct.pack("<BBB", 1, 0, len(name)) + name + struct.pack("<Q", 1)
            headers.objects[0].append(Message(p.LINK, data))

    return change


# -- the whole file --------------------------------------------------------------------------------


def block_attacks(data: bytes) -> Iterator[tuple[str, Attack]]:
    """Yield other superblocks, cuts, and what stands before or behind."""
    size = p.SUPERBLOCK.size
    for at in range(8, size):
        for value in (0, 3, 255):
            yield f"superblock: byte {at} is {value}", _block(at, bytes([value]))
    for at in range(12, size - 7, 8):
        for number in (0, 48, len(data) - 1, len(data) + 1, *LARGE):
            yield f"superblock: {number} at {at}", _block(at, struct.pack("<Q", number))
    for cut in (0, 1, 7, 8, 9, 20, 47, 48, 52, 60, 100, 500, len(data) // 2, len(data) - 1):
        yield f"cut at {cut}", lambda data, cut=cut: data[:cut]
    yield "bytes behind", lambda data: data + b"x"
    yield "a page of zeros behind", lambda data: data + bytes(4096)
    yield "a block of 512 before", lambda data: bytes(512) + data
    yield "two files", lambda data: data + data
    yield "a zip behind", lambda data: data + b"PK\3\4" + bytes(30)
    yield "only zeros", lambda data: bytes(len(data))
    yield "only the signature", lambda data: data[:8]


def _block(at: int, new: bytes) -> Attack:
    def attack(data: bytes) -> bytes:
        end = p.SUPERBLOCK.size
        block = (data[:at] + new + data[at + len(new) :])[:end]
        return block + struct.pack("<I", checksum(block)) + data[end + 4 :]

    return attack


def claim_attacks(draft: Draft) -> Iterator[tuple[str, Attack]]:
    """Yield files that claim, hold or name more than they should; nothing in them is damaged."""

    def made(
        texts: dict[str, str] | None = None,
        arrays: dict[str, Any] | None = None,
        attributes: dict[str, str] | None = None,
        compression: str | None = None,
    ) -> Attack:
        def attack(data: bytes) -> bytes:
            return bytes(
                to_bytes(
                    {**draft.attributes, **(attributes or {})},
                    {**draft.texts, **(texts or {})},
                    {**draft.arrays, **(arrays or {})},
                    compression,
                )
            )

        return attack

    for name in ("extra", "variables/extra", "constants/99", "golden/9/0/float32", "functions/99"):
        yield f"a dataset that nothing uses: {name}", made(arrays={f"/{name}": np.zeros(3)})
        yield f"a text that nothing uses: {name}", made(texts={f"/{name}": "{}"})
    for version in ("2.0", "2.9999", "3.0", "1.2", "0.1", "99999.0", "-2.0", " 2.0", "2", "two"):
        yield f"version {version}", made(attributes={"format_version": version})
    for text in ("h5py", "", "GRADTAPE", "x" * 4000):
        yield f"format {text[:9]}", made(attributes={"format": text or " "})
    yield "attributes", made(attributes={f"a{i}": "x" for i in range(40)})
    for k in (0, 1, 2):
        shape = [(0, 2**47), (0, 2**47, 2**47), (*[2**47] * 31, 0)][k]
        yield f"an empty array of shape {shape[:3]}", _huge_shape(shape)
    zeros = np.zeros(2**22, np.float32)
    yield "16 MB of zeros, compressed", made(arrays={"/extra": zeros}, compression="gzip")
    deep = "/g" * 64
    yield "groups 63 deep", made(arrays={f"{deep[:-2]}/x": np.zeros(1)})
    long = ("/" + "n" * 128) * 60
    crowd = {f"{long}/{i}": np.zeros(0, np.uint8) for i in range(1500)}
    yield "long paths", made(arrays=crowd)
    crowd = {f"/crowd/{i}": np.zeros(0, np.uint8) for i in range(6_000)}
    yield "6,000 empty datasets", made(arrays=crowd)
    yield (
        "3,000 groups",
        made(arrays={f"/crowd/{i}/x": np.zeros(0, np.uint8) for i in range(3000)}),
    )


def _huge_shape(shape: tuple[int, ...]) -> Attack:
    def change(headers: Headers) -> None:
        for messages in headers.objects:
            if [m.kind for m in messages][:1] == [p.DATASPACE] and messages[0].data[1] == 2:
                head = struct.pack("<BBBB", 2, len(shape), 0, 1)
                messages[0].data = head + struct.pack(f"<{len(shape)}Q", *shape)
                messages[-1].data = b"\3\1" + struct.pack("<QQ", p.UNDEFINED, 0)
                return

    return changed(change)
