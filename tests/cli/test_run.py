import json

from dynascope.cli import main


def test_a_field_that_the_study_refuses_is_told_by_its_name(capsys):
    assert main(["run", "lambda-balanced", "--balances", "1", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["argument"], error["value"]) == ("balances", 1)
    assert "at least 2" in error["remedy"]
