from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.journal.checks.model import is_refused, is_refused_literal


@pytest.mark.parametrize(
    "text",
    [
        "169.254.169.254",
        "169.254.0.1",
        "fe80::1",
        "fe80::1%eth0",
        "224.0.0.1",
        "ff02::1",
        "0.0.0.0",
        "0.1.2.3",
        "::",
        "255.255.255.255",
        "240.0.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "::ffff:0.0.0.0",
        "64:ff9b::169.254.169.254",
        "::169.254.169.254",
        "2002:a9fe:a9fe::1",
        "64:ff9b:1::a9fe:a9fe",
        "::ffff:0:a9fe:a9fe",
    ],
)
def test_addresses_of_the_link_and_of_clouds_are_refused_in_any_dress(text: str) -> None:
    assert is_refused(text)


@pytest.mark.parametrize(
    "text", ["127.0.0.1", "::1", "10.0.0.1", "192.168.1.1", "172.16.0.9", "fd12::1", "93.184.216.34", "2606:2800::1"]
)
def test_loopback_private_and_public_addresses_are_asked(text: str) -> None:
    assert not is_refused(text)


def test_a_name_is_no_literal() -> None:
    assert not is_refused_literal("metadata.example.org")
    assert is_refused_literal("169.254.169.254")


@given(st.integers(0, 2**32 - 1))
def test_an_address_inside_another_is_judged_alike(number: int) -> None:
    plain = IPv4Address(number)
    mapped = IPv6Address(b"\0" * 10 + b"\xff\xff" + plain.packed)
    assert is_refused(str(mapped)) == is_refused(str(plain))
