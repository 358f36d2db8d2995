"""Stands where Bazel 4 expects its coverage tools; every test target names them.

Only `bazel coverage` runs them.
"""

import sys

if __name__ == "__main__":
    sys.exit("`bazel coverage` is not supported here; use `bazel test`.")
