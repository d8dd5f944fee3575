from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from recorded_runs import write_run

from dynascope.cli import page_server
from dynascope.cli.commands import main
from dynascope.cli.page_server import PageServer
from dynascope.errors import InputError


def get(address: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def serve(monkeypatch):
    """Serves a page that contains the state of its data."""
    monkeypatch.setattr(page_server, "_SECONDS", 0.0)
    with PageServer(lambda: f"page of {state['now']}", lambda: state["now"], port=0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


state = {"now": 1}


def test_requests_without_the_token_are_forbidden(serve):
    base = serve.address.partition("?")[0]
    assert serve.server_address[0] == "127.0.0.1"
    for place in ("", "page", "state", "?token=", "page?token=wrong", f"page?t={serve.token}", "?token=%C3%A9"):
        assert get(base + place)[0] == 403
    assert get(serve.address)[0] == 200
    assert get(serve.address.replace("/?", "/other?"))[0] == 404


def test_the_page_is_rendered_again_when_the_state_has_changed(serve, monkeypatch):
    page, at = (serve.address.replace("/?", f"/{name}?") for name in ("page", "state"))
    assert (get(at), get(page)) == ((200, "1"), (200, "page of 1"))
    monkeypatch.setitem(state, "now", 2)
    assert (get(at), get(page)) == ((200, "2"), (200, "page of 2"))
    monkeypatch.setattr(page_server, "_SECONDS", 1000.0)
    monkeypatch.setitem(state, "now", 3)
    assert (get(at), get(page)) == ((200, "2"), (200, "page of 2"))


def test_the_old_page_stays_while_the_record_cannot_be_read(serve, monkeypatch):
    def fail():
        raise InputError("the record is gone", argument="path", remedy="restore it")

    monkeypatch.setattr(serve, "_state", fail)
    assert get(serve.address.replace("/?", "/state?"))[0] == 503
    assert get(serve.address.replace("/?", "/page?"))[0] == 200


def test_the_port_of_another_server_is_rejected(serve):
    with pytest.raises(InputError, match=r"port .* is not available"):
        PageServer(str, int, port=serve.server_port)


@pytest.mark.parametrize("arguments", [["nowhere.zarr"], [".", "--port", "70000"], [".", "--port", "-1"]])
def test_bad_arguments_are_rejected(arguments, tmp_path, monkeypatch, capsys):
    write_run(tmp_path / "run.zarr")
    monkeypatch.chdir(tmp_path / "run.zarr")
    assert main(["watch", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow
def test_watch_ends_with_an_interrupt(tmp_path):
    write_run(tmp_path / "run.zarr")
    command = [sys.executable, "-m", "dynascope", "watch", str(tmp_path / "run.zarr")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        found = re.search(r"http\S+", watch.stdout.readline())
        assert found is not None
        assert "Training run: run" in get(found[0].replace("/?", "/page?"))[1]
        time.sleep(0.2)
        watch.send_signal(signal.SIGINT)
        assert watch.wait(30) == 130


@pytest.mark.slow
def test_report_writes_the_page_of_a_run_beside_it(tmp_path, capsys):
    assert main(["report", str(write_run(tmp_path / "run.zarr"))]) == 0
    assert str(tmp_path / "run.html") in capsys.readouterr().out
    page = (tmp_path / "run.html").read_text("utf-8")
    assert page.index("What to know") < page.index("<h2>Loss</h2>")
