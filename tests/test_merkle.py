"""Merkle trees: every entry can be proved, nothing else can, and the tree is that of RFC 6962."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.merkle import MerkleTree, leaf_hash, node_hash, verify_inclusion

entries = st.lists(st.binary(max_size=8), min_size=1, max_size=40)


def rfc6962_root(leaves: list[bytes]) -> bytes:
    """The recursive definition of RFC 6962, §2.1."""
    if len(leaves) == 1:
        return leaves[0]
    split = 1 << (len(leaves) - 1).bit_length() - 1
    return node_hash(rfc6962_root(leaves[:split]), rfc6962_root(leaves[split:]))


@given(entries)
def test_the_root_is_that_of_the_recursive_definition(listed: list[bytes]) -> None:
    leaves = [leaf_hash(entry) for entry in listed]
    assert MerkleTree(leaves).root == rfc6962_root(leaves)


def test_the_roots_of_the_published_test_vectors() -> None:
    listed = [bytes.fromhex(text) for text in ("", "00", "10", "2021", "3031", "40414243")]
    roots = {
        0: hashlib.sha256().hexdigest(),
        1: "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        2: "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        3: "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        4: "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        5: "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        6: "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    }
    for n, root in roots.items():
        assert MerkleTree([leaf_hash(entry) for entry in listed[:n]]).root.hex() == root


@given(entries, st.data())
def test_every_entry_has_a_proof_at_its_own_place_only(listed: list[bytes], data: st.DataObject) -> None:
    leaves = [leaf_hash(entry) for entry in listed]
    tree, index = MerkleTree(leaves), data.draw(st.integers(0, len(listed) - 1))
    proof = tree.proof(index)
    assert verify_inclusion(leaves[index], index, len(listed), proof, tree.root)
    assert not verify_inclusion(leaf_hash(b"a ninth byte"), index, len(listed), proof, tree.root)
    other = data.draw(st.integers(0, len(listed) - 1))
    if leaves[other] != leaves[index]:
        assert not verify_inclusion(leaves[index], other, len(listed), tree.proof(other), tree.root)
    if proof:
        assert not verify_inclusion(leaves[index], index, len(listed), proof[:-1], tree.root)
    assert not verify_inclusion(leaves[index], index, len(listed), [*proof, leaves[0]], tree.root)


def test_an_inner_node_is_no_entry() -> None:
    tree = MerkleTree([leaf_hash(b"a"), leaf_hash(b"b")])
    inner = leaf_hash(b"a") + leaf_hash(b"b")
    assert not verify_inclusion(leaf_hash(inner), 0, 1, [], tree.root)


@pytest.mark.parametrize("index", [-1, 2])
def test_an_index_outside_the_list_has_no_proof(index: int) -> None:
    tree = MerkleTree([leaf_hash(b"a"), leaf_hash(b"b")])
    with pytest.raises(IndexError):
        tree.proof(index)
    assert not verify_inclusion(leaf_hash(b"a"), index, 2, [leaf_hash(b"b")], tree.root)
