"""Shell completion: the scripts are valid, and bash completes with them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from perdure.cli import main


def script(shell: str, capsys) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def completed(text: str, line: str) -> set[str]:
    words = line.split(" ")
    listed = " ".join(f"'{word}'" for word in words)
    given = f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}"
    code = f"{text}\n{given}; _perdure; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_commands_names_and_scales(capsys):
    text = script("bash", capsys)
    assert completed(text, "perdure re") >= {"reproduce", "report"}
    assert completed(text, "perdure run permuted-copy hn") >= {"hnet", "hnet+r", "hnet+coresets"}
    assert completed(text, "perdure reproduce table-") >= {"table-1", "table-2"}
    assert completed(text, "perdure run permuted-copy si --scale d") == {"demo"}
    assert completed(text, "perdure run permuted-copy si --seed") == {"--seed", "--seeds"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_of_other_shells_are_valid(shell, capsys):
    text = script(shell, capsys)
    assert "masking+si" in text
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=text, text=True).returncode == 0


def test_unknown_shells_are_refused(capsys):
    assert main(["completion", "tcsh"]) == 2
    assert "Unknown shell 'tcsh'" in capsys.readouterr().err
    assert main(["completion"]) == 2
