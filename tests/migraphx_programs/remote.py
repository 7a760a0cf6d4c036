"""Programs of the real MIGraphX from a test's side: each call is done by the worker process."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from migraphx_programs import debian, rig

WORKER = Path(__file__).with_name("worker.py")


class Refused(Exception):
    """The package refused; the text begins with the name of its exception."""


class Failed(Exception):
    """The worker died, or raised what it should not."""


class Remote:
    """A worker process for programs of one target. Raises debian.Unavailable where there is no MIGraphX."""

    def __init__(self, target: str, **environment: str) -> None:
        tree = debian.tree()
        folders, variables = ([rig.folder(tree)], rig.ENVIRONMENT) if target == "gpu" else ([], {})
        self.target = target
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - for as long as the worker lives
        self._process = subprocess.Popen(
            [*tree.command(sys.executable, *folders), "-X", "faulthandler", "-P", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **variables, **environment},
        )

    def ask(self, method: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            pickle.dump((method, arguments), self._process.stdin)
            self._process.stdin.flush()
            kind, answer = pickle.load(self._process.stdout)
        except (BrokenPipeError, EOFError) as error:
            raise Failed(f"the worker died with {self._process.wait()}: {self.errors()[-2000:]}") from error
        if kind == "refused":
            raise Refused(answer)
        if kind == "failed":
            raise Failed(f"{answer}: {self.errors()[-2000:]}")
        return answer

    def compile(self, path: Path, **options: Any) -> Program:
        return Program(self, self.ask("compile", str(path), {"target": self.target, **options}))

    def load(self, path: Path) -> Program:
        return Program(self, self.ask("load", str(path)))

    def errors(self) -> str:
        """What it wrote to its standard error stream."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def close(self) -> int:
        """Its exit status."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(timeout=120)


class Program:
    """A program in the worker."""

    def __init__(self, remote: Remote, number: int) -> None:
        self._remote, self._number = remote, number
        self.facts: dict[str, Any] = remote.ask("facts", number)

    def run(self, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        return dict(self._remote.ask("run", self._number, dict(inputs)))

    def launch(self, inputs: Mapping[str, NDArray[Any]], runs: int = 1) -> list[dict[str, NDArray[Any]]]:
        return list(self._remote.ask("launch", self._number, dict(inputs), runs))

    def launch_with(self, inputs: Mapping[str, Any]) -> None:
        """On the null stream, with what is given."""
        self._remote.ask("launch_with", self._number, dict(inputs), 0)

    def chain(
        self, second: Program, inputs: list[dict[str, NDArray[Any]]], renamed: dict[str, str]
    ) -> dict[str, NDArray[Any]]:
        """Outputs of `second` behind this one on a stream, `renamed` outputs of this one among its inputs."""
        return dict(self._remote.ask("chain", [self._number, second._number], inputs, renamed))

    def save(self, path: Path) -> None:
        self._remote.ask("save", self._number, str(path))

    @property
    def kinds(self) -> list[str]:
        """ "SegmentStep" and "NodeStep" in the order in which they run."""
        return [step[0] for step in self.facts["steps"]]
