"""Installs the packages of a lock that few need into a folder of their own, or finds it again.

    PYTHONPATH=$(python3 bazel/make_cluster_site.py requirements_cluster.lock) COMMAND

prints the folder, which lies under the user's cache folder and is named after the lock. Those of
requirements_cluster.lock, which --cluster needs, are too large for requirements.lock; what
requirements_scale.lock has would make everybody's environment anew.
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def site(lock: pathlib.Path, cache: pathlib.Path) -> pathlib.Path:
    """The folder with the packages of a lock; CalledProcessError where pip fails."""
    key = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = cache / "speciate" / "cluster_site" / key
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = pathlib.Path(tempfile.mkdtemp(dir=folder.parent))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(made)]
    try:
        subprocess.run([*pip, "-r", str(lock)], check=True, stdout=sys.stderr)
        made.rename(folder)  # whole or not at all
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return folder


def main() -> int:
    """Prints the folder; its exit code."""
    cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    try:
        print(site(pathlib.Path(sys.argv[1]), pathlib.Path(cache)))
    except subprocess.CalledProcessError as error:
        print(f"make_cluster_site: pip failed with {error.returncode}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
