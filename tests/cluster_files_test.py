"""The files that start a cluster are what Ray, Slurm and Kubernetes read."""

import json
import re
import subprocess

import pytest
import yaml

from backends.registry import target_names
from tests.source_tree import ROOT

FOLDER = ROOT / "docs" / "cluster"


@pytest.fixture(scope="module")
def manifest():
    return yaml.safe_load((FOLDER / "kuberay.yaml").read_text())


def pinned():
    lock = (ROOT / "requirements_cluster.lock").read_text()
    return re.search(r"^ray==(.*)$", lock, re.MULTILINE)[1]


def test_the_manifest_is_a_ray_cluster_of_the_pinned_version(manifest):
    assert (manifest["apiVersion"], manifest["kind"]) == ("ray.io/v1", "RayCluster")
    assert manifest["spec"]["rayVersion"] == pinned()
    head = manifest["spec"]["headGroupSpec"]
    assert head["rayStartParams"]["num-cpus"] == "0"
    ports = {p["name"]: p["containerPort"] for p in containers(head)[0]["ports"]}
    assert ports == {"gcs": 6379, "client": 10001}


def containers(group):
    return group["template"]["spec"]["containers"]


def test_its_groups_say_what_they_have_as_ray_reads_it(manifest):
    groups = manifest["spec"]["workerGroupSpecs"]
    assert len({group["groupName"] for group in groups}) == len(groups) == 2
    for group in groups:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
        (container,) = containers(group)
        start, limits = group["rayStartParams"], container["resources"]["limits"]
        assert all(isinstance(value, str) for value in start.values()), "KubeRay takes texts"
        assert start["num-cpus"] == limits["cpu"]
        # KubeRay hands the text to a shell: it is JSON in quotes.
        declared = json.loads(json.loads(start.get("resources", '"{}"')))
        assert declared.keys() <= set(target_names())
        assert bool(declared) == ("nvidia.com/gpu" in limits)


def test_the_slurm_script_is_a_script():
    script = FOLDER / "slurm.sh"
    subprocess.run(["bash", "-n", script], check=True)
    options = re.findall(r"^#SBATCH --([\w-]+)=", script.read_text(), re.MULTILINE)
    assert {"nodes", "ntasks-per-node", "cpus-per-task"} <= set(options)
