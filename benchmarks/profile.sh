#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What limits a kernel, by ncu: time, bytes, instructions, issue slots and stalls of one launch.
# Usage: sh benchmarks/profile.sh DIR OP [ROWS [DATA [TYPE [KERNEL]]]]    DIR: from tests/gpu/pack.sh; OP: as in
# bench_sampler --ops; defaults: 512 real bf16 sample_kernel. Its times are of a launch alone with a cold cache.
set -eu
dir=$1 op=$2 rows=${3:-512} data=${4:-real} type=${5:-bf16} kernel=${6:-sample_kernel}
export LD_LIBRARY_PATH="$dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
metrics=gpu__time_duration.sum,dram__bytes_read.sum,smsp__inst_executed.avg
metrics=$metrics,smsp__issue_active.avg.pct_of_peak_sustained_active
for reason in long_scoreboard short_scoreboard barrier wait math_pipe_throttle no_instruction mio_throttle lg_throttle \
  not_selected dispatch_stall imc_miss; do
  metrics=$metrics,smsp__average_warps_issue_stalled_${reason}_per_issue_active.ratio
done
# Why so many skipped: the kernels that create() runs once come first.
ncu --clock-control none --metrics "$metrics" -k "regex:$kernel" -s 17 -c 1 \
  "$dir/bench_sampler" --real "$dir/data/real_rows.bf16" --rows "$rows" --data "$data" --types "$type" --ops "$op" |
  grep -E "$kernel|gpu__|dram__|smsp__"
