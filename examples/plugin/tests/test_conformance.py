from finecomb.testing import check_format, check_interval_coverage, check_provider, check_statistic


def test_the_format_keeps_texts_and_marks() -> None:
    check_format("lines")


def test_the_statistic_is_repeatable_and_explains_undefined_values() -> None:
    check_statistic("late-marks")


def test_intervals_contain_the_value_of_the_population() -> None:
    check_interval_coverage("late-marks")


def test_the_provider_reads_replies_and_reports_errors() -> None:
    check_provider("acme", {"output": "Fine.", "cut": False}, "Fine.")
