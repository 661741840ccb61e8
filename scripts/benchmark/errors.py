# SPDX-License-Identifier: Apache-2.0
"""The two errors with which a benchmark ends without a result. Their texts are for users."""


class Misuse(Exception):
    """The benchmark cannot begin: a wrong option or profile, or a missing program. Exit status 2."""


class RunFailed(Exception):
    """A run has failed, or did something else than requested. Exit status 1."""
