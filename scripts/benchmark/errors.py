# SPDX-License-Identifier: Apache-2.0
"""The two ways in which a benchmark ends without a result. Both are sentences for people."""


class Misuse(Exception):
    """It cannot begin: an option, a profile, or something that is not installed. Exit status 2."""


class RunFailed(Exception):
    """What was started has failed, or did something else than was asked for. Exit status 1."""
