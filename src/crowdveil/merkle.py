"""Merkle trees: one hash commits to a whole list, and a short proof shows that an entry is in it.

The tree and its inclusion proofs are those of RFC 6962, §2.1: a leaf is hashed behind a zero byte and an inner node
behind a one byte, so that no inner node can be shown as a leaf (a second preimage).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

HASH_BYTES = 32


def leaf_hash(entry: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class MerkleTree:
    """The tree over the hashes of a list's entries, level by level from the leaves up.

    RFC 6962 splits n entries at the largest power of two below n. That is the same as pairing neighbours level by level
    and passing an odd last node up unchanged.

    >>> tree = MerkleTree([leaf_hash(entry) for entry in (b"a", b"b", b"c")])
    >>> verify_inclusion(leaf_hash(b"c"), 2, 3, tree.proof(2), tree.root)
    True
    >>> verify_inclusion(leaf_hash(b"d"), 2, 3, tree.proof(2), tree.root)
    False
    """

    def __init__(self, leaves: Sequence[bytes]) -> None:
        self._levels = [list(leaves)]
        while len(self._levels[-1]) > 1:
            below = self._levels[-1]
            above = [node_hash(below[i], below[i + 1]) for i in range(0, len(below) - 1, 2)]
            self._levels.append(above + below[len(below) - len(below) % 2 :])

    def __len__(self) -> int:
        return len(self._levels[0])

    @property
    def root(self) -> bytes:
        """The root; the hash of nothing where the list is empty."""
        return self._levels[-1][0] if len(self) else hashlib.sha256().digest()

    def proof(self, index: int) -> list[bytes]:
        """The siblings on the way from the leaf to the root."""
        if not 0 <= index < len(self):
            raise IndexError(f"a proof needs an index from 0 to {len(self) - 1}; got {index}")
        siblings = []
        for level in self._levels[:-1]:
            if (sibling := index ^ 1) < len(level):
                siblings.append(level[sibling])
            index >>= 1
        return siblings


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether the entry with this leaf hash stands at `index` of the list of `size` entries that has this root."""
    if not 0 <= index < size or any(len(sibling) != HASH_BYTES for sibling in proof):
        return False
    node, position, last, remaining = leaf, index, size - 1, list(proof)
    while last:
        # A last node without a sibling passes up unchanged.
        if position ^ 1 <= last:
            if not remaining:
                return False
            sibling = remaining.pop(0)
            node = node_hash(sibling, node) if position & 1 else node_hash(node, sibling)
        position, last = position >> 1, last >> 1
    return not remaining and node == root
