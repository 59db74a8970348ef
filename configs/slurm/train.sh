#!/bin/bash
# sbatch configs/slurm/train.sh configs/train/infmem_grpo.yaml --out /shared/runs/infmem
# sbatch --nodes 4 configs/slurm/train.sh configs/train/infmem_grpo.yaml --out /shared/runs/infmem
#
# Trains on whole nodes with ZeRO-2, one `accelerate launch` a node; words after the recipe are settings of `treeagent train`. The
# run folder must lie on a disk that all nodes see. Half an hour before the time is up, SLURM sends SIGUSR1: the step in progress is
# finished and saved, and the same command goes on from there. Submitted several times with --dependency=singleton, the jobs
# follow one another until the run is finished.
# Run with stand-ins of SLURM's commands in the tests, not on a cluster.
#SBATCH --job-name=treeagent-train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=24:00:00
#SBATCH --signal=USR1@1800
#SBATCH --output=%x-%j.log
set -euo pipefail

: "${1:?the recipe comes first: sbatch configs/slurm/train.sh RECIPE --key value}"
GPUS=${SLURM_GPUS_ON_NODE:-8}
PROCESSES=$((SLURM_NNODES * GPUS))
mapfile -t NODES < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
HEAD=${NODES[0]}
CONFIG=${LAUNCH_CONFIG:-configs/deepspeed/nodes_2_zero2.yaml}
export HEAD CONFIG PROCESSES

# The launcher would die of the signal that is meant for the processes it starts; these listen to it nevertheless.
srun --kill-on-bad-exit=1 bash -c 'trap "" USR1
exec accelerate launch --config_file "$CONFIG" --num_machines "$SLURM_NNODES" --num_processes "$PROCESSES" \
  --machine_rank "$SLURM_NODEID" --main_process_ip "$HEAD" -m treeagent.train "$@" --processes "$PROCESSES"' train "$@"
