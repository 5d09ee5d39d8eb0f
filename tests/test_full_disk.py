"""Warehouses on disks that are full, real mounts: one line, status 3, and nothing lost."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.warehouse.input.shards import write_jsonl_zst
from tests.conftest import REPOSITORY
from tests.test_contract_of_commands import with_counts
from tests.tiny_models import save

_UNSHARE = ("unshare", "--mount", "--map-root-user")
#: The place on a disk of its own without room: what was there, and a file that fills the rest. Then
#: room is made and the command started again. Prints the status of the first.
_FULL = """
cp -a "$0" "$0.kept" && mount -t tmpfs -o size=24m tmpfs "$0" && cp -a "$0.kept/." "$0"
head -c 64m /dev/zero > "$0/filler" 2>/dev/null
[ "$ROOM" = 0 ] || truncate -s "-$ROOM" "$0/filler"
"$@"
echo "first: $?"
rm "$0/filler"
exec "$@"
"""


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    made = subprocess.run(
        [*_UNSHARE, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
    )
    return made.returncode == 0


pytestmark = pytest.mark.skipif(not can_mount(), reason="no mounts in a namespace of one's own")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the warehouse `w`, a shard and a tiny model."""
    root = tmp_path_factory.mktemp("disks")
    save("gpt2", root / "model")
    write_jsonl_zst(root / "a.jsonl.zst", ["she has tea and he has coffee in the morning"] * 400)
    with_counts(root / "w")
    (root / "models").mkdir()
    return root


_SHORT = ("--max-tokens", "3000")
_PLUMBLINE = (sys.executable, "-c", "from plumbline.pipelines.command.main import entry; entry()")
WAREHOUSE = ("--warehouse", "w")
COMMANDS = {
    "count": ("corpus", "count", "a.jsonl.zst", "--corpus", "n", "--targets", "she-he", *WAREHOUSE),
    "score": ("score", "--model", "model", "--benchmark", "d", *WAREHOUSE),
    "train": ("train", "a.jsonl.zst", "--name", "m", "--corpus", "c", *_SHORT, *WAREHOUSE),
    "associate": ("corpus", "associate", "--corpus", "c", *WAREHOUSE),
    "constrain": ("benchmark", "constrain", "--corpus", "c", "--benchmark", "b", *WAREHOUSE),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "disk", "room"),
    # Some of a model's files fit into the last room, its weights of 2.6 MB don't.
    [*((name, "w", 0) for name in COMMANDS), ("train", "models", 1 << 21)],
)
def test_a_full_disk_is_one_line_and_the_command_goes_on_with_room(
    place: Path, name: str, disk: str, room: int
) -> None:
    named = ["another" if word == "m" and room else word for word in COMMANDS[name]]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PREFECT_", "PLUMB"))}
    env |= {"PYTHONPATH": str(REPOSITORY), "ROOM": str(room)}
    command = [*_UNSHARE, "sh", "-c", _FULL, str(place / disk), *_PLUMBLINE, *named]
    how = {"cwd": place, "env": env, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run(command, **how)
    assert "first: 3\n" in done.stdout and done.returncode == 0, done.stdout + done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert "No space left on device" in line and "Traceback" not in done.stderr, done.stderr
