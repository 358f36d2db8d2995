"""What the files of a computer say of its GPUs."""

from backends.gpu.device.nodes import driver


def test_the_driver_is_the_one_that_says_its_version(tmp_path):
    assert driver(tmp_path) == ""
    for name, version in (("amdgpu", "6.8.5"), ("nvidia", "580.159.04")):
        (tmp_path / name).mkdir()
        assert name not in driver(tmp_path)
        (tmp_path / name / "version").write_text(f"{version}\n")
        assert driver(tmp_path) == f"{name} {version}"
