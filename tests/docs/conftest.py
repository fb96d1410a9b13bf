"""Pages type commands as the tests of the command line do."""

from tests.cli.conftest import folder, windrow_command

__all__ = ["folder", "windrow_command"]
