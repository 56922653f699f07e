"""`memfit watch --serve` for real: a process that is watched, a server, and its viewers."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memfit.cli import main
from tests.measure.record import crafted_recordings
from tests.serve.watching import HOSTILE, PATIENCE, Stream, Watching, growing, watching

pytest.importorskip("uvicorn")
prometheus = pytest.importorskip("prometheus_client.parser")

VIEWERS = 50


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Watching, int]]:
    """A server with a live process, whose name is hostile."""
    with growing(HOSTILE) as process, watching(str(process.pid), "--every", "200ms") as server:
        server.wait_for_a_frame()
        yield server, process.pid


def test_what_has_no_token_or_a_wrong_one_gets_nothing(served: tuple[Watching, int]) -> None:
    server, pid = served
    for path in ("/", "/events", "/metrics", "/page.js", "/plotly.js", "/nothing", "/?token=x"):
        answer = server.get(path)
        assert answer.status == 403 and str(pid) not in answer.text
    assert server.get("/metrics", Authorization="Bearer wrong").status == 403
    assert server.get("/", Cookie="memfit_1=2").status == 403
    assert server.get("/", "POST").status == server.get("/", "OPTIONS").status == 403


def test_an_address_works_once_and_another_is_printed(served: tuple[Watching, int]) -> None:
    server, pid = served
    path = f"/?token={server.token}"
    assert server.get(path, "HEAD").status == 403  # looking at a link does not use it up
    answer = server.get(path)
    assert answer.status == 200 and str(pid) in answer.text
    for word in ("HttpOnly", "SameSite=Strict"):
        assert word in answer.headers["set-cookie"]
    assert server.get(path).status == 403
    cookie = answer.headers["set-cookie"].split(";")[0]
    assert server.get(path, Cookie=cookie).status == 200
    assert server.next_url().split("token=")[1] not in path
    assert server.get("/nothing", Cookie=cookie).status == 404
    assert server.get("/", "POST", Cookie=cookie).status == 405


def test_no_page_from_elsewhere_can_read_it(served: tuple[Watching, int]) -> None:
    server, _ = served
    cookie = server.cookie()
    for path in ("/", "/events", "/metrics"):
        assert server.get(path, host=f"evil.example:{server.port}", Cookie=cookie).status == 403
        assert server.get(path, Cookie=cookie, Origin="http://evil.example").status == 403
        assert server.get(path, Cookie=cookie, Origin="http://localhost:1").status == 403
    answer = server.get("/", Cookie=cookie, Origin=f"http://127.0.0.1:{server.port}")
    assert answer.status == 200
    assert not any(name.startswith("access-control") for name in answer.headers)
    assert "script-src 'self';" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"


def test_names_are_text(served: tuple[Watching, int]) -> None:
    server, _ = served
    cookie = server.cookie()
    page = server.get("/", Cookie=cookie).text
    stream = server.stream(cookie)
    told = json.loads(stream.event()[1])
    stream.close()
    for text in (page, told["parts"]["processes"], told["parts"]["title"]):
        assert "<script>alert" not in text and "\x1b" not in text
        assert r"&lt;script&gt;alert(1)&lt;/script&gt;\x1b[2J&amp;amp;" in text


def test_metrics_are_as_prometheus_reads_them(served: tuple[Watching, int]) -> None:
    server, pid = served
    by_header = server.get("/metrics", Authorization=f"Bearer {server.token}")
    assert by_header.status == server.get(f"/metrics?token={server.token}").status == 200
    assert by_header.headers["content-type"].startswith("text/plain; version=0.0.4")
    found = {
        sample.name: (sample.labels, sample.value)
        for family in prometheus.text_string_to_metric_families(by_header.text)
        for sample in family.samples
    }
    labels, amount = found["memfit_pss_bytes"]
    assert labels == {"role": "main", "pid": str(pid), "run": str(pid)}
    assert amount == found["memfit_total_pss_bytes"][1] > 2**20
    assert found["memfit_limit_bytes"][1] > amount
    assert found["memfit_ended"][1] == 0


def test_the_page_has_the_figures_of_the_terminal(served: tuple[Watching, int]) -> None:
    server, pid = served
    stream = server.stream(server.cookie())
    told = json.loads(stream.event()[1])
    stream.close()
    assert told["name"] == str(pid)
    assert len(told["curve"]["seconds"]) == len(told["curve"]["bytes"]) >= 1
    for part in ("tiles", "rows", "processes", "slices", "gauge", "head"):
        assert told["parts"][part]


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def until(holds: object, what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end, what
        time.sleep(0.05)


def test_fifty_viewers_a_slow_one_and_one_that_vanishes(served: tuple[Watching, int]) -> None:
    server, _ = served
    cookie = server.cookie()
    pid = server.process.pid
    before, alone = files(pid), threads(pid)
    slow = server.stream(cookie, buffer=4096)  # it never reads
    vanished = server.stream(cookie)
    viewers = [server.stream(cookie) for _ in range(VIEWERS)]
    try:
        assert [viewer.event()[0] for viewer in viewers] == ["run"] * VIEWERS
        # Gone in the middle of a frame, without a word.
        vanished.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        vanished.close()
        for _ in range(3):
            assert {viewer.event()[0] for viewer in viewers} <= {"run", "beat"}
        assert threads(pid) <= alone + 1  # one reader for all; one may unpack plotly
        assert server.get("/", Cookie=cookie).status == 200
    finally:
        for viewer in (*viewers, slow):
            viewer.close()
    until(lambda: files(pid) <= before + 1, "connections stay open")
    assert server.process.poll() is None


def test_ctrl_c_ends_it_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    with growing() as process, watching(str(process.pid), cwd=tmp_path) as server:
        cookie = server.cookie()
        viewers: list[Stream] = [server.stream(cookie) for _ in range(3)]
        slow = server.stream(cookie, buffer=4096)
        for viewer in viewers:
            assert viewer.event()[0] == "run"
        seconds, code, said = server.end()
        assert code == 0 and seconds < 20  # on a machine that is busy with other tests
        assert "verdict: " in said and "Traceback" not in said
        kinds = []
        while kind := viewers[0].event()[0]:
            kinds.append(kind)
        assert kinds[-1] == "bye"
        for viewer in (*viewers, slow):
            viewer.close()
        with pytest.raises(ConnectionRefusedError):
            server.get()
        assert process.poll() is None  # what was watched goes on
    assert list(tmp_path.iterdir()) == []


def test_a_process_beside_a_recording_that_has_ended(tmp_path: Path) -> None:
    recording = tmp_path / "night.db"
    crafted_recordings.good(recording)
    with (
        growing() as process,
        watching(str(process.pid), str(recording), "--every", "100ms") as server,
    ):
        cookie = server.cookie()
        until(lambda: "has ended" in server.get("/", Cookie=cookie).text, "the end is not told")
        page = server.get("/", Cookie=cookie).text
        assert f'data-run="{process.pid}"' in page and 'data-run="night.db"' in page
        process.kill()
        process.wait(PATIENCE)
        until(
            lambda: server.get("/", Cookie=cookie).text.count("This run has ended") == 2,
            "the process's end is not told",
        )
        told = server.get("/metrics", Cookie=cookie).text
        assert f'memfit_ended{{run="{process.pid}"}} 1' in told


def test_without_a_web_server_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "uvicorn.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "memfit", "watch", str(os.getpid()), "--serve"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 2 and "pip install 'memfit[serve]'" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["4711", "--serve", "--once"], "--serve goes on until Ctrl-C"),
        (["4711", "--host", "box"], "add --serve"),
        (["--serve=0.0.0.0:1", "1"], "--host NAME"),
        (["--serve", "localhost:70000", "1"], "no address"),
        (["--serve", "nowhere.invalid:1", "1"], "no host"),
        (["--serve", "--format", "json"], "--once"),
        (["--serve", "not-there.db"], "not-there.db"),
    ],
)
def test_wrong_words(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", *words]) == 2
    assert said in capsys.readouterr().err
