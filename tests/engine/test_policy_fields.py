"""Fields of a policy as people write them: several countries' numbers, and nothing that is no number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.engine.policy import RANGES, Policy, PolicyError
from sessions_app.engine.policy_fields import FIELDS, Unit, in_words, parse, read, show, written


def test_every_field_of_a_policy_is_described_and_in_a_group():
    assert set(FIELDS) == set(Policy.__struct_fields__)
    assert all(field.label and field.help.endswith(".") for field in FIELDS.values())
    assert len({field.label for field in FIELDS.values()}) == len(FIELDS)


@pytest.mark.parametrize("name", list(FIELDS))
def test_what_is_written_is_read_back(name):
    field, default = FIELDS[name], getattr(Policy(), name)
    value = list(default) if isinstance(default, tuple) else default
    assert read(field, written(field, value)) == value
    assert show(field, value)


@given(st.sampled_from(sorted(RANGES)), st.floats(0, 1))
def test_every_number_within_its_range_is_read_back(name, share):
    field, (low, high) = FIELDS[name], RANGES[name]
    value = low + share * (high - low)
    is_whole = isinstance(low, int) and field.unit is not Unit.FACTOR and name != "scripted_delay_s"
    value = round(value) if is_whole else round(value, 4)
    assert read(field, written(field, value)) == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("threshold_pct", "80", 0.8),
        ("threshold_pct", "80 %", 0.8),
        ("threshold_pct", "72,5", 0.725),
        ("threshold_pct", "0.8", 0.8),
        ("threshold_pct", "0,8", 0.8),
        ("cap_tokens", "160000", 160_000),
        ("cap_tokens", "160,000", 160_000),
        ("cap_tokens", "160.000", 160_000),
        ("cap_tokens", "160 000", 160_000),
        ("cap_tokens", "160\u202f000", 160_000),
        ("cap_tokens", "160k", 160_000),
        ("cap_tokens", "1.5M", 1_500_000),
        ("cap_tokens", "1,5M", 1_500_000),
        ("safety_margin", "1,25", 1.25),
        ("total_timeout_s", "auto", None),
        ("enabled", "Off", False),
        ("summarisers", "openai:qwen3@32768,\r\n extractive", ["openai:qwen3@32768", "extractive"]),
    ],
)
def test_numbers_are_read_as_they_are_written_in_several_countries(name, text, value):
    assert read(FIELDS[name], text) == value


@pytest.mark.parametrize(
    "text", ["nan", "inf", "-inf", "1e3", "0x10", "٣", "١٦٠٠٠٠", "12 parsecs", "1,2,3", "--5", "9" * 400, "160,00", "1.5", ""]
)
def test_what_is_no_whole_number_is_refused_in_words(text):
    with pytest.raises(PolicyError, match="Trigger at most") as caught:
        read(FIELDS["cap_tokens"], text)
    assert caught.value.fields == ("cap_tokens",)


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("threshold_pct", "99", "Trigger must lie between 10 % and 95 %, not at 99 %."),
        ("threshold_pct", "0.8 %", "Trigger must lie between 10 % and 95 %, not at 0.8 %."),
        ("cap_tokens", "999", "Trigger at most must lie between 1,000 and 2,000,000, not at 999."),
        ("cap_tokens", "999999999999999", "Trigger at most must lie between 1,000 and 2,000,000, not at 999,999,999,999,999."),
        ("profile", "poetry", "Profile is one of conversation, coding, research, support, not 'poetry'."),
        ("enabled", "perhaps", "Compact automatically is on or off, not 'perhaps'."),
        ("summarisers", "extractive extractive", "The summariser extractive stands there twice."),
        ("summarisers", "openai:x@100", "must lie between 1,000 and 10,000,000 tokens"),
    ],
)
def test_a_fault_is_told_in_the_words_and_units_of_the_page(name, text, sentence):
    with pytest.raises(PolicyError) as caught:
        read(FIELDS[name], text)
    assert sentence in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_a_number_or_a_sentence(text):
    for name in ("threshold_pct", "cap_tokens", "call_timeout_s", "safety_margin", "scripted_delay_s"):
        try:
            value = parse(FIELDS[name], text)
        except PolicyError:
            continue
        assert isinstance(value, int | float)
        assert abs(value) < 10**22


def test_sentences_about_fields_name_them_as_the_page_does():
    said = in_words("keep_recent_fraction must be smaller than target_fraction.")
    assert said == "“Keep word for word” must be smaller than “View after a compaction”."
