"""The tests of generated kernels, found by the folders of their records."""

load(":code_object.bzl", "code_object")
load(":pytest.bzl", "pytest_test")

_CHECK = "//kernels_generated:record_check.py"
_RECORD = "/record.toml"

def kernel_records():
    """The test `records_test` of all folders TARGET with a record.toml in them, with its slow part
    `records_test_slow`; and of each TARGET_test, which is "manual", so that `//...` does not check a
    record twice. `records` are their files.

    One process checks the records of a kernel, because the start of one takes about as long as
    most of them. Each source of a device's language is compiled by a target of its own,
    TARGET/kernel_object, without the device. The package is kernels_generated/KERNEL, with its spec.kir. The search adds
    folders; this finds them.
    """
    native.filegroup(
        name = "records",
        srcs = native.glob(["spec.kir", "*/*"], exclude = ["**/__pycache__/**"]),
        visibility = ["//visibility:public"],
    )
    records = native.glob(["*" + _RECORD], allow_empty = True)
    if records:
        _check("records_test", records)
        _check("records_test_slow", records, ["-m", "slow"], size = "enormous", tags = ["slow"])
    for record in records:
        _check(record[:-len(_RECORD)] + "_test", [record], tags = ["manual"])

    for source in native.glob(
        ["*/kernel*"],
        exclude = ["*/*.py", "*/*.cc"],  # which are compiled where they run
        allow_empty = True,
    ):
        folder, _, file = source.rpartition("/")
        code_object(
            name = "%s/%s_object" % (folder, file.partition(".")[0]),
            source = source,
            record = folder + _RECORD,
        )

def _check(name, records, args = [], **kwargs):
    pytest_test(
        name = name,
        srcs = [_CHECK],
        args = ["--record=$(rootpath %s)" % record for record in records] + args,
        data = native.glob(
            ["spec.kir"] + [record[:-len(_RECORD)] + "/**" for record in records],
            exclude = ["**/__pycache__/**"],
        ),
        deps = ["//kernels_generated"],
        **kwargs
    )
