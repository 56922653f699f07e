"""A script's text with changes made in it: a copy for the user to read, never their own file.

Edits are made where the syntax tree says that a part stands, so that all other text stays as it
is. What the text gives in a way that is not seen here is told in `left`, and is for a person.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from memfit.model import Changes
from memfit.model.changes import ALGORITHM, REPLAY, ROLLOUT, WORKERS

_FORK, _LIGHT, _SUBPROC = "fork", "LightVecEnv", "SubprocVecEnv"
_LIBRARIES = ("stable_baselines3", "sb3_contrib")
_MALLOC = {"MALLOC_ARENA_MAX": "arenas", "MALLOC_MMAP_THRESHOLD_": "mmap_threshold"}
_THREADS = "OMP_NUM_THREADS"
_MAKERS = ("make_vec_env", "make_atari_env")


@dataclass(frozen=True, kw_only=True)
class Patched:
    """The text with the changes, and those that are left for a person to make."""

    before: str
    text: str
    left: tuple[str, ...]

    def diff(self, name: str) -> str:
        """The change as a unified diff of the file of this name."""
        lines = difflib.unified_diff(
            self.before.splitlines(keepends=True),
            self.text.splitlines(keepends=True),
            f"a/{name}",
            f"b/{name}",
        )
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in lines
        )


def patched(text: str, changes: Changes) -> Patched:
    """The text of a script with these changes, as far as they can be made in it."""
    script = _Script(text)
    left = list(script.make(changes))
    return Patched(before=text, text=script.text(), left=tuple(left))


class _Script:
    """A text whose edits are collected, and made from the end to the beginning."""

    def __init__(self, text: str) -> None:
        self.data = text.encode()
        self.tree = ast.parse(text)
        lines = self.data.splitlines(keepends=True)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))
        self.edits: dict[tuple[int, int], str] = {}
        self.imports: set[str] = set()
        self.first: list[str] = []
        self.algorithms = self._imported()

    def text(self) -> str:
        """The text with all edits."""
        data = self.data
        if self.first:
            at = self._top()
            self.edits[at, at] = "".join(self.first)
        if self.imports:
            at, names = self._below_imports(), ", ".join(sorted(self.imports))
            before = self.edits.get((at, at), "")
            self.edits[at, at] = f"{before}from memfit.dropins import {names}\n"
        for (start, end), new in sorted(self.edits.items(), reverse=True):
            data = data[:start] + new.encode() + data[end:]
        return data.decode()

    def make(self, changes: Changes) -> Iterator[str]:
        """Collect the edits for these changes; what cannot be made is told."""
        keywords: dict[str, str] = {}
        for place in (ROLLOUT, REPLAY):
            if place in changes.parts:
                keywords[place] = changes.parts[place]
                self.imports.add(changes.parts[place])
        given = {name: repr(value) for name, value in changes.options.items()}
        models = list(self._models(changes))
        for name, value in (keywords | given).items():
            done = [self._set(call, name, value) for call in models]
            if not any(done):
                self.imports.discard(value)
                yield f"{name}={value}, where the algorithm is made"
        if ALGORITHM in changes.parts:
            yield from self._rename(models, changes.parts[ALGORITHM])
        if WORKERS in changes.parts:
            yield from self._put_workers(changes.parts[WORKERS])
        for place in changes.parts.keys() - {ROLLOUT, REPLAY, ALGORITHM, WORKERS}:
            yield f"memfit.dropins.{changes.parts[place]} around each env ({place})"
        for name, number in changes.knobs.items():
            if not self._set_number(name, number, models):
                yield f"{name}={number}"
        self._put_settings(changes.variables)
        if changes.once:
            names = ", ".join(map(repr, changes.once))
            yield f"memfit.dropins.build_once({names}), before the envs are made"
        for name, wanted in changes.update.items():
            yield f"{name} = {str(wanted).lower()}, which is how it updates"

    # -- what stands where -------------------------------------------------------------------------

    def _at(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def _span(self, node: ast.expr | ast.keyword | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(
            node.end_lineno, node.end_col_offset
        )

    def _imported(self) -> set[str]:
        """Names that come from stable-baselines3, as the script calls them."""
        found = set()
        for node in ast.walk(self.tree):
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            if isinstance(node, ast.ImportFrom) and module.split(".")[0] in _LIBRARIES:
                found |= {alias.asname or alias.name for alias in node.names}
        return found

    def _models(self, changes: Changes) -> Iterator[ast.Call]:
        """Calls that make an algorithm: `PPO("MlpPolicy", env, ...)`."""
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            policy = node.args[0] if node.args else _keyword(node, "policy")
            known = name in self.algorithms and name.isupper()
            if known and policy is not None and len(node.args) + len(node.keywords) > 1:
                yield node

    def _top(self) -> int:
        """Where a line may stand before all other code: after the docstring and `__future__`."""
        line = 1
        for at, node in enumerate(self.tree.body):
            is_doc = at == 0 and ast.get_docstring(self.tree) is not None
            future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
            if not (is_doc or future):
                break
            line = (node.end_lineno or node.lineno) + 1
        if line == 1:
            for text in self.data.splitlines()[:2]:
                line += text.startswith(b"#!") or b"coding" in text[:20]
        return self.starts[min(line, len(self.starts)) - 1]

    def _below_imports(self) -> int:
        """Where an import may stand beside those of the library."""
        ends = [
            node.end_lineno
            for node in self.tree.body
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _LIBRARIES
        ]
        return self.starts[max(n for n in ends if n)] if ends else self._top()

    # -- edits -------------------------------------------------------------------------------------

    def _set(self, call: ast.Call, name: str, value: str) -> bool:
        """Give a call another value for a keyword, or one that it has not."""
        unseen = any(k.arg is None for k in call.keywords)  # what stands in **kwargs
        if unseen and _keyword(call, name) is None and name.encode() in self.data:
            return False
        known = _keyword(call, name)
        if known is not None:
            self.edits[self._span(known)] = value
            return True
        last = max(
            [*call.args, *(k.value for k in call.keywords)], key=lambda node: self._span(node)[1]
        )
        end = self._span(last)[1]
        before = self.edits.get((end, end), "")
        self.edits[end, end] = f"{before}, {name}={value}"
        return True

    def _rename(self, models: list[ast.Call], name: str) -> Iterator[str]:
        found = [call for call in models if getattr(call.func, "id", "") == "PPO"]
        for call in found:
            self.edits[self._span(call.func)] = name
            self.imports.add(name)
        if not found:
            yield f"memfit.dropins.{name} in the place of PPO"

    def _put_workers(self, part: str) -> Iterator[str]:
        names = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Name) and node.id == _SUBPROC
        ]
        calls = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        own = [call for call in calls if getattr(call.func, "id", "") == _SUBPROC]
        made = [
            call
            for call in calls
            if getattr(call.func, "id", "") in _MAKERS
            and getattr(_keyword(call, "vec_env_cls"), "id", "") == _SUBPROC
        ]
        if not names:
            yield f"{'start_method=' if part == _FORK else ''}{part} for the vector env"
            return
        if part == _FORK:
            done = [self._set(call, "start_method", '"fork"') for call in own]
            how = '{"start_method": "fork"}'
            done += [self._set(call, "vec_env_kwargs", how) for call in made]
            if not any(done):
                yield 'start_method="fork" for the vector env'
            return
        for node in names:
            self.edits[self._span(node)] = _LIGHT
        self.imports.add(_LIGHT)
        for call in own:
            self._drop(call, "start_method")
        for call in made:
            self._drop(call, "vec_env_kwargs")

    def _drop(self, call: ast.Call, name: str) -> None:
        """Take a keyword away, with the comma before it."""
        for keyword in call.keywords:
            if keyword.arg == name:
                start, end = self._span(keyword)
                comma = self.data.rfind(b",", 0, start)
                self.edits[comma if comma >= 0 else start, end] = ""

    def _set_number(self, name: str, number: int, models: list[ast.Call]) -> bool:
        """Another number for a setting: an argument of the algorithm, a constant, a default."""
        for call in models:
            if _keyword(call, name) is not None and self._set(call, name, str(number)):
                return True
        for node in ast.walk(self.tree):
            target = _constant_of(node, name)
            if target is not None:
                self.edits[self._span(target)] = str(number)
                return True
        done = [self._set(call, name, str(number)) for call in models]
        return any(done)

    def _put_settings(self, variables: Mapping[str, str]) -> None:
        """Settings of malloc and threads, before anything is imported that they are for."""
        given = {_MALLOC[name]: value for name, value in variables.items() if name in _MALLOC}
        if _THREADS in variables:
            given["threads"] = variables[_THREADS]
        if given:
            words = ", ".join(f"{name}={value}" for name, value in given.items())
            self.first.append(
                f"from memfit.dropins import apply_settings\n\napply_settings({words})\n\n"
            )


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((k.value for k in call.keywords if k.arg == name), None)


def _constant_of(node: ast.AST, name: str) -> ast.expr | None:
    """Where a program's text gives a setting its number, None where this is another place."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        named = any(getattr(t, "id", "").lower() == name.lower() for t in targets)
        return node.value if named and _is_number(node.value) else None
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument":
        options = [str(a.value) for a in node.args if isinstance(a, ast.Constant)]
        if any(option.lstrip("-").replace("-", "_") == name for option in options):
            value = _keyword(node, "default")
            return value if _is_number(value) else None
    return None


def _is_number(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int
