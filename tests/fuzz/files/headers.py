"""The headers of a file of format 2 in parts that can be changed; checksums are repaired."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

from gradtape.saving.container.hdf5 import profile as p
from gradtape.saving.container.hdf5.profile import checksum

__all__ = ["Headers", "changed"]

_START = p.SUPERBLOCK.size + 4
_NUMBERS = [0, 1, 2, 3, 4, 8, 17, 48, 255, 256, 2**15, 2**16 - 1, 2**31, 2**32 - 1]
_LARGE = [*_NUMBERS, 2**40, 2**47, 2**48, 2**62, 2**63 - 1, 2**63, 2**64 - 1]


@dataclass
class Message:
    """One message of an object's header."""

    kind: int
    data: bytes
    flags: int = 0
    size: int | None = None

    def encoded(self) -> bytes:
        """Return its bytes; ``size`` is the size that it claims."""
        size = len(self.data) if self.size is None else self.size
        return p.MESSAGE.pack(self.kind & 255, size & 65535, self.flags & 255) + self.data


class Headers:
    """The superblock, all headers, and the bytes after them.

    While the headers are in parts, addresses in links are numbers of objects, so that they are
    correct wherever the objects are written.
    """

    def __init__(self, data: bytes) -> None:
        self.superblock = list(p.SUPERBLOCK.unpack_from(data))
        self.objects: list[list[Message]] = []
        numbers: dict[int, int] = {}
        place = _START
        while data[place : place + 4] == b"OHDR":
            numbers[place] = len(self.objects)
            length = p.HEADER.unpack_from(data, place)[3]
            start = place + p.HEADER.size
            self.objects.append(_messages(data[start : start + length]))
            place = start + length + 4
        self._begin = p.aligned(place)
        self.rest = data[self._begin :]
        for message in self._links():
            address = int.from_bytes(message.data[-8:], "little")
            message.data = message.data[:-8] + struct.pack("<Q", numbers[address])

    def _links(self) -> list[Message]:
        return [m for messages in self.objects for m in messages if m.kind == p.LINK]

    def encoded(self) -> bytes:
        """Return the file, with addresses, lengths and checksums correct unless changed."""
        addresses = []
        place = _START
        for messages in self.objects:
            addresses.append(place)
            place += p.HEADER.size + sum(len(m.encoded()) for m in messages) + 4
        begin = p.aligned(place)
        shift = begin - self._begin
        parts = []
        for messages in self.objects:
            body = b"".join(self._placed(m, addresses, shift) for m in messages)
            header = p.HEADER.pack(b"OHDR", 2, 2, len(body)) + body
            parts += [header, struct.pack("<I", checksum(header))]
        rest = self._moved(shift)
        end = begin + len(rest)
        block = p.SUPERBLOCK.pack(*self.superblock[:7], end, _START)
        head = block + struct.pack("<I", checksum(block)) + b"".join(parts)
        return head + bytes(begin - len(head)) + rest

    def _moved(self, shift: int) -> bytes:
        """Return the data, with indices of compressed data adjusted to their new positions."""
        rest = bytearray(self.rest)
        for message in (m for messages in self.objects for m in messages):
            data = message.data
            if message.kind == p.LAYOUT and len(data) > 11 and data[:2] == b"\3\2":
                index = int.from_bytes(data[3:11], "little") - self._begin
                place = index + 32 + 8 * data[2]
                if index >= 0 and rest[index : index + 4] == b"TREE" and place + 8 <= len(rest):
                    address = int.from_bytes(rest[place : place + 8], "little") + shift
                    rest[place : place + 8] = struct.pack("<Q", address % 2**64)
        return bytes(rest)

    def _placed(self, message: Message, addresses: list[int], shift: int) -> bytes:
        data = message.data
        if message.kind == p.LINK and len(data) > 8:
            number = int.from_bytes(data[-8:], "little")
            address = addresses[number] if number < len(addresses) else number
            data = data[:-8] + struct.pack("<Q", address)
        elif message.kind == p.LAYOUT and len(data) == 18 and data[:2] == b"\3\1":
            offset, size = struct.unpack("<QQ", data[2:])
            if offset != p.UNDEFINED:
                data = data[:2] + struct.pack("<QQ", (offset + shift) % 2**64, size)
        elif message.kind == p.LAYOUT and len(data) > 11 and data[:2] == b"\3\2":
            offset = int.from_bytes(data[3:11], "little")
            data = data[:3] + struct.pack("<Q", (offset + shift) % 2**64) + data[11:]
        return Message(message.kind, data, message.flags, message.size).encoded()


def _messages(body: bytes) -> list[Message]:
    found, place = [], 0
    while place < len(body):
        kind, size, flags = p.MESSAGE.unpack_from(body, place)
        place += p.MESSAGE.size
        found.append(Message(kind, body[place : place + size], flags))
        place += size
    return found


def changed(data: bytes, rng: random.Random) -> bytes:
    """Return a file with one to three changes in its headers."""
    headers = Headers(data)
    for _ in range(rng.choice([1, 1, 2, 3])):
        rng.choice(_CHANGES)(headers, rng)
    found = headers.encoded()
    return found if rng.random() < 0.8 else _in_place(found, rng)


def _in_place(data: bytes, rng: random.Random) -> bytes:
    """Change bytes of the superblock or of a header in place, and repair the checksum."""
    found = bytearray(data)
    place, ends = _START, [(0, _START - 4)]
    while found[place : place + 4] == b"OHDR":
        length = p.HEADER.unpack_from(found, place)[3]
        ends.append((place, place + p.HEADER.size + length))
        place = ends[-1][1] + 4
    begin, end = rng.choice(ends)
    at = rng.randrange(begin, max(begin + 1, end))
    width = rng.choice([1, 1, 2, 4, 8])
    value = rng.choice(_LARGE) if rng.random() < 0.5 else rng.getrandbits(64)
    found[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")
    del found[len(data) :]
    found[end : end + 4] = struct.pack("<I", checksum(bytes(found[begin:end])))
    return bytes(found)


# -- changes of the parts --------------------------------------------------------------------------


def _object(headers: Headers, rng: random.Random) -> list[Message]:
    return rng.choice([x for x in headers.objects if x] or [[Message(0, b"")]])


def _field(headers: Headers, rng: random.Random) -> None:
    """Put a number somewhere into a message."""
    message = rng.choice(_object(headers, rng))
    width = rng.choice([1, 1, 2, 4, 8])
    if len(message.data) < width:
        return
    at = rng.randrange(0, len(message.data) - width + 1)
    value = rng.choice(_LARGE) if rng.random() < 0.6 else rng.getrandbits(64)
    new = (value % 2 ** (8 * width)).to_bytes(width, "little")
    message.data = message.data[:at] + new + message.data[at + width :]


def _bit(headers: Headers, rng: random.Random) -> None:
    message = rng.choice(_object(headers, rng))
    if message.data:
        data = bytearray(message.data)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        message.data = bytes(data)


def _head(headers: Headers, rng: random.Random) -> None:
    message = rng.choice(_object(headers, rng))
    what = rng.choice(["kind", "flags", "size"])
    setattr(message, what, rng.choice([*range(24), *_NUMBERS]))


def _length(headers: Headers, rng: random.Random) -> None:
    message = rng.choice(_object(headers, rng))
    cut = rng.randrange(len(message.data) + 1)
    more = bytes(rng.choice([0, 1, 255]) for _ in range(rng.choice([0, 1, 8, 200])))
    message.data = message.data[:cut] + more


def _message(headers: Headers, rng: random.Random) -> None:
    """Remove a message, repeat it, or take one from another object."""
    messages = _object(headers, rng)
    at = rng.randrange(len(messages))
    action = rng.choice(["remove", "repeat", "take", "swap"])
    if action == "remove":
        del messages[at]
        return
    other = rng.choice(_object(headers, rng))
    if action == "swap":
        messages[at].data, other.data = other.data, messages[at].data
    elif action == "take":
        messages[at] = Message(other.kind, other.data)
    else:
        messages.insert(at, Message(other.kind, other.data))


def _whole(headers: Headers, rng: random.Random) -> None:
    """Remove an object, repeat it, or let two change places."""
    at, other = (rng.randrange(len(headers.objects)) for _ in range(2))
    action = rng.choice(["remove", "repeat", "swap"])
    if action == "remove" and len(headers.objects) > 1:
        del headers.objects[at]
    elif action == "repeat":
        headers.objects.insert(at, [Message(m.kind, m.data) for m in headers.objects[other]])
    else:
        objects = headers.objects
        objects[at], objects[other] = objects[other], objects[at]


def _target(headers: Headers, rng: random.Random) -> None:
    """Make a link point to another object."""
    links = [m for m in headers._links() if len(m.data) > 8]
    if links:
        message = rng.choice(links)
        target = rng.choice([rng.randrange(len(headers.objects) + 2), rng.choice(_LARGE)])
        message.data = message.data[:-8] + struct.pack("<Q", target)


def _name(headers: Headers, rng: random.Random) -> None:
    """Give a link another name."""
    links = [m for m in headers._links() if len(m.data) > 11]
    if links:
        message = rng.choice(links)
        names = [b"", b"..", b"a/b", b"\xff", b"x" * 255, b"manifest", b"digests", b"w", b"\n"]
        name = rng.choice([*names, rng.choice(links).data[3:-8]])
        message.data = struct.pack("<BBB", 1, 0, len(name)) + name + message.data[-8:]


def _block(headers: Headers, rng: random.Random) -> None:
    at = rng.randrange(1, 7)
    headers.superblock[at] = rng.choice(_NUMBERS if at > 4 else _NUMBERS[:9])


def _data(headers: Headers, rng: random.Random) -> None:
    """Shorten or extend the bytes after the headers."""
    cut = rng.randrange(len(headers.rest) + 1)
    headers.rest = rng.choice([headers.rest[:cut], headers.rest + bytes(cut), headers.rest[cut:]])


_CHANGES = [
    *[_field] * 6,
    *[_bit] * 3,
    *[_head] * 2,
    _length,
    _message,
    _message,
    _whole,
    _target,
    _target,
    _name,
    _block,
    _data,
]
