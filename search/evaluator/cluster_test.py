"""The resources of a slot, and how many slots fit."""

import pytest

from ir.errors import KernelError
from search.evaluator.cluster import capacity, fitting, slot_resources
from search.evaluator.testing.fake_cluster import node

HEAD = node("head", CPU=4.0, memory=1e9, object_store_memory=1e9, **{"node:10.0.0.1": 1.0})
LAB = node("lab", CPU=8.0, GPU=2.0, chip=2.0)
FAKE = node("fake", CPU=2.0, chip=1.0)


def test_where_a_node_declares_the_target_only_such_nodes_are_used():
    found = slot_resources([HEAD, FAKE], "chip", device=False)
    assert found == {"CPU": 1.0, "chip": 0.25}
    assert (capacity([HEAD], found), capacity([HEAD, FAKE], found)) == (0, 2)
    assert capacity([node("small", CPU=64.0, chip=1.0)], found) == 4


def test_a_device_s_slots_are_told_which_gpu_of_their_node_is_theirs():
    found = slot_resources([HEAD, LAB], "chip", device=True)
    assert found == {"CPU": 1.0, "chip": 0.25, "GPU": 0.25}
    assert capacity([LAB], found) == 8
    assert "GPU" not in slot_resources([LAB, FAKE], "chip", device=True)


def test_a_target_without_a_device_needs_a_core():
    assert slot_resources([HEAD, LAB], "other", device=False) == {"CPU": 1.0}


def test_a_device_that_no_node_declares_is_an_error_that_says_what_to_do():
    with pytest.raises(KernelError) as caught:
        slot_resources([HEAD, LAB], "other", device=True)
    text = str(caught.value)
    assert "no node of the cluster declares `other`" in text
    assert "2 nodes declare: `chip`" in text and "node:10" not in text
    assert """--resources='{"other": 1}'""" in text


def test_a_cluster_on_this_machine_alone_declares_nothing():
    assert slot_resources([HEAD], "other", device=True, local=True) == {"CPU": 1.0}
    assert slot_resources([LAB], "other", device=True, local=True) == {"CPU": 1.0, "GPU": 0.25}


def test_a_search_has_at_least_one_slot_to_wait_for():
    assert fitting([HEAD], {"CPU": 1.0}, None) == 4
    assert fitting([HEAD], {"CPU": 1.0}, 3) == 3
    assert fitting([], {"CPU": 1.0}, 3) == 1
