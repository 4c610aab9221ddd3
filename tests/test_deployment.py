"""The files of deploy/ agree with the broker: options, variables, paths and trusted headers are read against it."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli.commands import accept

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
BROKER = ROOT / "src" / "crowdveil" / "broker"
DATA = "/var/lib/crowdveil"


def dockerfile() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile with their arguments, continuation lines joined."""
    lines = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if not line.startswith("#")]
    instructions = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in instructions if line.strip()]


def last(instruction: str) -> str:
    return [arguments for name, arguments in dockerfile() if name == instruction][-1]


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"])


def unit() -> configparser.SectionProxy:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read(DEPLOY / "crowdveil.service")
    return parser["Service"]


def serve_commands() -> dict[str, list[str]]:
    """The words after `crowdveil` in each of the three ways to start the broker."""
    started = shlex.split(unit()["ExecStart"])
    return {
        "image": json.loads(last("CMD")),
        "compose": compose()["broker"]["command"],
        "unit": [word for word in started[1:] if word != "$SERVE_OPTIONS"],
    }


def settings_variables() -> set[str]:
    """The environment variables that the broker's settings read."""
    return set(re.findall(r'environ\.get\("(CROWDVEIL_\w+)"', (BROKER / "settings.py").read_text()))


@pytest.mark.parametrize("way", ["image", "compose", "unit"])
def test_the_command_line_accepts_what_starts_the_broker(way: str) -> None:
    words = serve_commands()[way]
    accept(words)
    assert words[0] == "serve"
    joined = " ".join(words).replace("=", " ")
    assert f"--data-dir {DATA}" in joined
    assert "--port 8000" in joined
    assert "--demo" not in joined


def test_every_variable_is_one_that_the_settings_read() -> None:
    files = [path.read_text() for path in DEPLOY.iterdir() if path.name not in ("Caddyfile", "example.env")]
    named = {name for text in files for name in re.findall(r"\b(CROWDVEIL_[A-Z_]+)\s*[:=](?!\?)", text)}
    assert {"CROWDVEIL_HOSTS", "CROWDVEIL_BEHIND_PROXY"} <= named
    # The proxy's own, read by the Caddyfile.
    proxy = set(re.findall(r"\{\$(CROWDVEIL_\w+)", (DEPLOY / "Caddyfile").read_text()))
    assert proxy == {name for name in compose()["proxy"]["environment"] if name.startswith("CROWDVEIL_")}
    assert named - proxy <= settings_variables()


def test_every_variable_that_must_be_set_stands_in_the_example() -> None:
    wanted = set(re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose.yaml").read_text()))
    offered = set(re.findall(r"^(\w+)=", (DEPLOY / "example.env").read_text(), re.MULTILINE))
    assert wanted == offered


def test_every_image_is_pinned_to_a_version() -> None:
    bases = [arguments.split()[0] for name, arguments in dockerfile() if name == "FROM"]
    images = [service["image"] for service in compose().values()]
    assert len(bases) == 2
    assert [image for image in bases + images if not re.search(r":\d+\.\d+(\.\d+)?(-[a-z]+)*$", image)] == []


def test_the_image_installs_only_what_is_locked() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    installs = re.findall(r"pip (install|wheel) ([^&\n]+)", text)
    assert len(installs) == 4
    assert all("--require-hashes" in options or "--no-deps" in options for _, options in installs)
    copied = [path for name, arguments in dockerfile() if name == "COPY" for path in arguments.split()[:-1]]
    assert [path for path in copied if not path.startswith(("--from", "/")) and not (ROOT / path).exists()] == []


def test_the_broker_is_nobody_in_particular_and_keeps_its_keys_private() -> None:
    names = [name for name, _ in dockerfile()]
    assert last("USER") not in ("root", "0", "0:0")
    assert names.index("USER") < names.index("ENTRYPOINT")
    assert "--mode=0700" in last("RUN")
    assert last("VOLUME") == DATA
    assert f"broker:{DATA}" in compose()["broker"]["volumes"]
    assert compose()["broker"]["read_only"] is True
    assert "ports" not in compose()["broker"]
    assert unit()["DynamicUser"] == "yes"
    assert unit()["StateDirectory"] == Path(DATA).name
    assert unit()["StateDirectoryMode"] == "0700"


def test_the_health_check_asks_a_path_that_exists_by_a_name_that_is_allowed() -> None:
    asked = re.search(r"http://([\d.]+):8000/(\w+)", last("HEALTHCHECK"))
    assert asked is not None
    assert f'path("{asked[2]}"' in (BROKER / "urls.py").read_text()
    assert asked[1] in compose()["broker"]["environment"]["CROWDVEIL_HOSTS"].split(",")


def test_forwarded_headers_are_trusted_only_behind_the_proxy() -> None:
    """Django believes both headers where this variable says so; Caddy sets both unless the file changes them."""
    read = "".join(path.read_text() for path in BROKER.rglob("*.py"))
    assert set(re.findall(r"HTTP_(X_FORWARDED_\w+)", read)) == {"X_FORWARDED_PROTO", "X_FORWARDED_FOR"}
    assert compose()["broker"]["environment"]["CROWDVEIL_BEHIND_PROXY"] == "1"
    assert "CROWDVEIL_BEHIND_PROXY=1" in unit()["Environment"]
    caddyfile = (DEPLOY / "Caddyfile").read_text()
    assert not re.search(r"^\s*(header_up|trusted_proxies|log)\b", caddyfile, re.MULTILINE)


def test_a_variable_that_the_manual_of_deploying_names_exists() -> None:
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    named = set(re.findall(r"\bCROWDVEIL_[A-Z_]+\b", page)) - {"CROWDVEIL_DOMAIN", "CROWDVEIL_UPSTREAM"}
    assert named
    assert named <= settings_variables()


def test_hadolint_accepts_the_dockerfile() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([linter, DEPLOY / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_caddy_accepts_its_file_and_forwards_to_the_broker() -> None:
    caddy = shutil.which("caddy")
    if caddy is None:
        pytest.skip("caddy is not installed; make test installs it")
    done = subprocess.run(
        [caddy, "adapt", "--config", DEPLOY / "Caddyfile", "--adapter", "caddyfile"],
        env=os.environ | {"CROWDVEIL_DOMAIN": "studies.example.org"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    adapted = json.loads(done.stdout)
    assert '"dial": "127.0.0.1:8000"' in json.dumps(adapted)
    assert "logs" not in json.dumps(adapted)


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    systemd = shutil.which("systemd-analyze")
    if systemd is None:
        pytest.skip("systemd-analyze is not installed")
    # It asks for the program, which is not installed there on this machine.
    text = (DEPLOY / "crowdveil.service").read_text().replace("/opt/crowdveil/bin/crowdveil", sys.executable)
    (tmp_path / "crowdveil.service").write_text(text)
    done = subprocess.run([systemd, "verify", tmp_path / "crowdveil.service"], capture_output=True, text=True)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "crowdveil.service:" in line]) == (0, [])
