"""Command lines: read back what was written in any of its forms, and sentences for the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.commands.arguments import (
    ALMOST,
    YES_NO,
    Arguments,
    check_count,
    check_names,
    on_off_options,
    parse,
    path_option,
    runs_folder,
)
from perdure.errors import PerdureError

SWITCHES, ON_OFF, REPEATED = ("json", "force"), ("network.bidirectional", "weights.spectral"), ("plugin",)
TEXTS = st.text(min_size=1, max_size=8).filter(lambda text: not text.startswith("-"))
NUMBERS = st.one_of(st.integers(-99, 99).map(str), st.floats(allow_nan=False).map(str))
PLAIN = ["seed", "runs", "training.iterations", "penalties.online-ewc.strength"]


@st.composite
def lines(draw):
    """Words of a command line, and what they mean, put together independently of each other."""
    meant, groups = Arguments(), []
    for name in draw(st.lists(st.sampled_from(PLAIN), unique=True)):
        value = draw(st.one_of(TEXTS, NUMBERS))
        meant.options[name] = value
        groups.append(draw(st.sampled_from([[f"--{name}", value], [f"--{name}={value}"]])))
    for name in draw(st.lists(st.sampled_from(SWITCHES), unique=True)):
        word = draw(st.sampled_from(["", "=true", "=false"]))
        if word != "=false":
            meant.options[name] = "true"
        groups.append([f"--{name}{word}"])
    for name in draw(st.lists(st.sampled_from(ON_OFF), unique=True)):
        value = draw(st.sampled_from(["true", "false", None]))
        meant.options[name] = value or "true"
        groups.append([f"--{name}"] if value is None else [f"--{name}", value])
    for value in draw(st.lists(TEXTS, max_size=3)):
        groups.append(["--plugin", value])
    unlike = (
        *YES_NO,
        *ALMOST,
    )  # such a word after an option that is on or off would be its value, or refused
    for word in draw(st.lists(TEXTS.filter(lambda text: text.lower() not in unlike), max_size=3)):
        groups.append([word])
    groups = draw(st.permutations(groups))
    meant.repeated = {"plugin": [g[1] for g in groups if g[0] == "--plugin"]}
    meant.repeated = {name: values for name, values in meant.repeated.items() if values}
    meant.positional = [group[0] for group in groups if not group[0].startswith("--")]
    return [word for group in groups for word in group], meant


@given(lines())
def test_any_order_and_form_is_read_back(line):
    words, meant = line
    read = parse(words, switches=SWITCHES, on_off=ON_OFF, repeated=REPEATED)
    assert read == meant


@given(
    st.lists(st.one_of(st.text(max_size=6), st.sampled_from(["--a", "--b.c", "-h", "--", "--=", "-", "=x"])))
)
def test_whatever_is_typed_is_read_or_refused_in_a_sentence(words):
    try:
        read = parse(words, switches=SWITCHES, on_off=ON_OFF, repeated=REPEATED)
    except PerdureError:  # and nothing else
        return
    assert read.help == ("-h" in words[: words.index("--")] if "--" in words else "-h" in words)
    assert set(read.positional) <= set(words)


def test_dashes_and_underscores_of_names_mean_the_same():
    read = parse(
        ["--training.learning-rate", "1", "--penalties.online-ewc.strength=-1e3", "--save-every", "3"]
    )
    assert read.options == {
        "training.learning_rate": "1",
        "penalties.online-ewc.strength": "-1e3",
        "save-every": "3",
    }
    with pytest.raises(PerdureError, match="given twice"):
        parse(["--training.learning-rate", "1", "--training.learning_rate", "2"])


def test_names_are_checked_before_values():
    read = parse(["--sed", "--seeds"])
    with pytest.raises(PerdureError, match="Unknown option '--sed': did you mean '--seed'"):
        check_names(read, ("seed", "seeds"))
    with pytest.raises(PerdureError, match="--seeds needs a value"):
        check_names(parse(["--seeds"]), ("seed", "seeds"))
    with pytest.raises(PerdureError, match="Unknown option '--plugin'"):
        check_names(parse(["--plugin", "a", "--plugin", "b"], repeated=REPEATED), ("seed",))


def test_names_are_not_shortened():
    with pytest.raises(PerdureError, match="Unknown option '--see'"):
        check_names(parse(["--see", "1"]), ("seed",))


def test_an_option_given_several_times_keeps_its_order():
    read = parse(["--plugin", "b.py", "x", "--plugin=a.py"], repeated=REPEATED)
    assert read.repeated == {"plugin": ["b.py", "a.py"]}
    assert read.positional == ["x"]


def test_both_values_of_a_switch_are_alternatives_of_a_search():
    words = ["permuted-copy", "si", "--network.bidirectional", "true,false", "--network.orthogonal", "si"]
    read = parse(words, on_off=("network.bidirectional", "network.orthogonal"))
    assert read.options == {"network.bidirectional": "true,false", "network.orthogonal": "true"}
    assert read.positional == ["permuted-copy", "si", "si"]


def test_on_off_options_are_those_of_configs():
    assert on_off_options(["run", "--seed", "a.b"]) == set()
    assert "network.bidirectional" in on_off_options(["--training.clip=1"])
    assert "benchmark.standardise" in on_off_options(["--benchmark.folder", "x"])


@pytest.mark.parametrize("text", ["", "  "])
def test_empty_names_of_folders_are_refused(text):
    with pytest.raises(PerdureError, match="--runs needs a path"):
        runs_folder({"runs": text})
    assert path_option({}, "plot") is None


def test_words_too_many_are_named():
    with pytest.raises(PerdureError, match="'x' is one argument too many for perdure list"):
        check_count(parse(["x"]), 0, "perdure list")
