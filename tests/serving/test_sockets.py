from __future__ import annotations

import pytest

from pytest_golden.errors import SettingsError
from pytest_golden.web.listening import bind, write_address


def test_a_free_port_is_picked_and_told() -> None:
    with bind("127.0.0.1", 0) as bound:
        port = bound.getsockname()[1]
        assert port > 0
        assert write_address("127.0.0.1", bound) == f"http://127.0.0.1:{port}"
        assert write_address("::1", bound) == f"http://[::1]:{port}"


def test_what_cannot_be_listened_on_is_told_in_one_sentence() -> None:
    with bind("127.0.0.1", 0) as bound:
        for host, port in (
            ("127.0.0.1", bound.getsockname()[1]),
            ("192.0.2.1", 0),
            ("\u00e4" * 64, 0),
            ("2001:db8::1", 0),
        ):
            with pytest.raises(
                SettingsError, match=f"cannot listen on {host} port {port}: .*; give another --host or --port"
            ):
                bind(host, port)
