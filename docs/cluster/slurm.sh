#!/bin/bash
#SBATCH --job-name=speciate
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --gpus-per-node=1
#SBATCH --time=04:00:00
# A Ray cluster in a Slurm allocation, and a search on it: docs/scale.md.
#   sbatch docs/cluster/slurm.sh --target=h200 --kernel=attention
# TARGET: what the nodes declare; empty for targets without a device.
set -euo pipefail
TARGET=${TARGET-h200}
PORT=${PORT-6379}

head=$(hostname --ip-address | awk '{print $1}')
resources="{}"
if [[ -n $TARGET ]]; then
    resources="{\"$TARGET\": 1}"
fi

# The batch script's own node is the head, which evaluates nothing; a task on each node evaluates.
ray start --head --node-ip-address="$head" --port="$PORT" --num-cpus=0 --num-gpus=0 --include-dashboard=false
trap 'ray stop' EXIT
srun --overlap --exact ray start --address="$head:$PORT" --num-cpus="$SLURM_CPUS_PER_TASK" \
    --resources="$resources" --block &

python3 -m search.evolve --cluster="$head:$PORT" "$@"
