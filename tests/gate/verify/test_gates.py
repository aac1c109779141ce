from __future__ import annotations

from pathlib import Path

from pytest_golden.verify.gates import GatePlace, use_store

PLACE = GatePlace(Path("golden_projects.yaml"), {"PATH": "/bin"}, options=("--golden-learning=off",))


def test_servers_url_with_its_password_is_on_no_command_line() -> None:
    url = "postgresql://ada:secret@db.example/golden"
    place = use_store(PLACE, url)
    assert place.options == PLACE.options
    assert place.environment == {"PATH": "/bin", "GOLDEN_STORE_URL": url}


def test_file_is_said_by_an_option_which_wins_over_a_configuration() -> None:
    for told in ("golden.db", "sqlite:///golden.db", "none"):
        place = use_store(PLACE, told)
        assert place.options == (*PLACE.options, f"--golden-store={told}")
        assert place.environment == PLACE.environment
