"""`python -m pyvecgpu`: what it says without a command, or with one that there is not."""

import pytest

from pyvecgpu import __main__ as command


def test_without_a_command_it_names_all(capsys):
    assert command.main([]) == 0
    said = capsys.readouterr().out
    for name, text in command.COMMANDS.items():
        assert name in said and text.split()[0] in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--nonsense"], "unknown option --nonsense"), (["nonsense"], "invalid choice: 'nonsense'")],
)
def test_what_there_is_not(capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    said = capsys.readouterr()
    assert message in said.err and not said.out
