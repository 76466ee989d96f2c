"""perdure completion SHELL: a script for bash, zsh or fish that completes commands, names and options."""

from __future__ import annotations

from perdure.commands import COMMANDS
from perdure.commands.arguments import check_count, check_names, parse
from perdure.errors import PerdureError, unknown

HELP = """\
perdure completion bash|zsh|fish: print a completion script

  bash   eval "$(perdure completion bash)"            in ~/.bashrc
  zsh    eval "$(perdure completion zsh)"             in ~/.zshrc, after compinit
  fish   perdure completion fish | source             in ~/.config/fish/config.fish
"""

SHELLS = ("bash", "zsh", "fish")

COMMON = (
    "--scale",
    "--scenario",
    "--seed",
    "--seeds",
    "--workers",
    "--runs",
    "--json",
    "--plot",
    "--help",
    "--plugin",
)
"""Options offered after any command; perdure run ... --help shows all."""


def completing(words: list[str]) -> int:
    """Print the script of a shell."""
    read = parse(words)
    check_names(read, ())
    if read.help:
        print(HELP, end="")
        return 0
    check_count(read, 1, "perdure completion")
    if not read.positional:
        raise PerdureError(f"perdure completion needs a shell: {', '.join(SHELLS)}.")
    (shell,) = read.positional
    if shell not in SHELLS:
        raise unknown("shell", shell, SHELLS)
    print({"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]())
    return 0


def _choices() -> dict[str, list[str]]:
    """The words that may follow each command; the first entry has the commands themselves."""
    from perdure.analysis.catalogue import ANALYSES
    from perdure.methods import COMBINATIONS
    from perdure.paper.item import items
    from perdure.presets import SCALES
    from perdure.registry import methods, pieces

    names = [*sorted(pieces("benchmarks")), *methods(), *COMBINATIONS]
    return {
        "": [*COMMANDS, "--help", "--version"],
        "run": names,
        "search": names,
        "reproduce": ["all", *items()],
        "analyse": list(ANALYSES),
        "data": ["list", "check", "build", "where"],
        "cluster": ["start"],
        "list": ["pieces"],
        "completion": list(SHELLS),
        "--scale": list(SCALES),
    }


def _bash() -> str:
    cases = "\n".join(
        f'    {name}) words="{" ".join(found)} {" ".join(COMMON)}" ;;'
        for name, found in _choices().items()
        if name and not name.startswith("--")
    )
    found = _choices()
    return f"""\
_perdure() {{
  local words now="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
  case "${{COMP_WORDS[1]}}" in
{cases}
    *) words="{" ".join(COMMON)}" ;;
  esac
  [ "$COMP_CWORD" = 1 ] && words="{" ".join(found[""])}"
  [ "$before" = --scale ] && words="{" ".join(found["--scale"])}"
  COMPREPLY=($(compgen -W "$words" -- "$now"))
}}
complete -o default -F _perdure perdure"""


def _zsh() -> str:
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash()}"


def _fish() -> str:
    found = _choices()
    lines = [f"complete -c perdure -n __fish_use_subcommand -f -a '{' '.join(found[''])}'"]
    for name, words in found.items():
        if name and not name.startswith("--"):
            lines.append(
                f"complete -c perdure -n '__fish_seen_subcommand_from {name}' -f -a '{' '.join(words)}'"
            )
    lines.append(f"complete -c perdure -l scale -x -a '{' '.join(found['--scale'])}'")
    lines += [
        f"complete -c perdure -l {option.removeprefix('--')}" for option in COMMON if option != "--scale"
    ]
    return "\n".join(lines)
