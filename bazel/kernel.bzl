"""The tests of generated kernels, found by the folders of their records."""

load(":pytest.bzl", "pytest_test")

_CHECK = "//kernels_generated:record_check.py"
_RECORD = "/record.toml"

def kernel_records():
    """For each folder TARGET with a record.toml in it, the test TARGET_test.

    The package is kernels_generated/KERNEL, with its spec.kir. The search adds
    folders; this finds them.
    """
    for record in native.glob(["*" + _RECORD], allow_empty = True):
        target = record[:-len(_RECORD)]
        pytest_test(
            name = target + "_test",
            srcs = [_CHECK],
            args = ["--record=$(rootpath %s)" % record],
            data = native.glob([
                "spec.kir",
                target + "/**",
            ], exclude = ["**/__pycache__/**"]),
            deps = ["//kernels_generated"],
        )
