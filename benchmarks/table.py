# SPDX-License-Identifier: Apache-2.0
"""The tables of RESULTS.md from bench_sampler's JSON: python3 benchmarks/table.py bench.json [earlier.json]"""
import json
import sys

# TARGETS.md, V = 128256, us a call. GOALS: (bf16, fp32). PEERS: the best that others were measured at on an H200, with fp32
# but for SonicSampler's greedy (bf16, up to 256 rows): published numbers, not of the same run.
GOALS = {
    1: {"greedy": (2.5, 3.1), "plain": (3.3, 3.6), "top_k": (7, 7), "top_k_top_p": (7, 7), "top_p": (7, 7), "mixed": (8, 8)},
    32: {"greedy": (5.5, 7.1), "plain": (7.5, 8.5), "top_k": (11, 12), "top_k_top_p": (11, 12), "top_p": (11, 12),
         "mixed": (12, 13)},
    128: {"greedy": (11.2, 18), "plain": (15, 20), "top_k": (18, 23), "top_k_top_p": (18, 23), "top_p": (18, 24),
          "mixed": (19, 25)},
    512: {"greedy": (32, 60), "plain": (42, 66), "top_k": (48, 72), "top_k_top_p": (48, 72), "top_p": (52, 75),
          "mixed": (52, 76)},
}
PEERS = {
    1: {"greedy": 3.9, "plain": 3.7, "top_k": 36, "top_k_top_p": 35, "top_k100_top_p": 57, "top_p": 15, "mixed": 7285},
    8: {"greedy": 4.7, "plain": 9.3, "top_k": 42, "top_k_top_p": 27, "top_k100_top_p": 65, "top_p": 32, "mixed": 7292},
    32: {"greedy": 8.1, "plain": 26, "top_k": 86, "top_k_top_p": 77, "top_k100_top_p": 108, "top_p": 70, "mixed": 7380},
    128: {"greedy": 26, "plain": 91, "top_k": 261, "top_k_top_p": 171, "top_k100_top_p": 285, "top_p": 152, "mixed": 11890},
    256: {"greedy": 47, "plain": 177, "top_k": 491, "top_k_top_p": 265, "top_k100_top_p": 525, "top_p": 232},
    512: {"greedy": 75, "plain": 330, "top_k": 962, "top_k_top_p": 445, "top_k100_top_p": 1012, "top_p": 395},
}


def read(file):
    with open(file, encoding="utf-8") as opened:
        return json.load(opened)["rows"]


def cells_of(rows):
    return {(row["data"], row["type"], row["rows"], row["op"]): row for row in rows}


def print_tables(rows, earlier):
    ops = list(dict.fromkeys(row["op"] for row in rows))
    for data in dict.fromkeys(row["data"] for row in rows):
        for kind in dict.fromkeys(row["type"] for row in rows if row["data"] == data):
            print(f"\n### {data}, {kind}\n\n| rows | read | " + " | ".join(ops) + " |")
            print("|" + "---|" * (len(ops) + 2))
            cells = [row for row in rows if (row["data"], row["type"]) == (data, kind)]
            for n in dict.fromkeys(row["rows"] for row in cells):
                at = {row["op"]: row for row in cells if row["rows"] == n}
                line = []
                for op in ops:
                    before = earlier.get((data, kind, n, op))
                    was = f" (was {before['us']:.1f})" if before else ""
                    line.append(f"{at[op]['us']:.1f} x{at[op]['ratio']:.2f}{was}" if op in at else "-")
                print(f"| {n} | {next(iter(at.values()))['read_us']:.2f} | " + " | ".join(line) + " |")


def print_goals(cells):
    print("\n### real rows beside the goals and the best published peer\n")
    print("| rows | step | bf16: us, goal, over | fp32: us, goal, over | peer, us | peer / ours |")
    print("|---|---|---|---|---|---|")
    for n, peers in PEERS.items():
        for op, peer in peers.items():
            line = []
            for i, kind in enumerate(("bf16", "fp32")):
                row, goal = cells.get(("real", kind, n, op)), GOALS.get(n, {}).get(op)
                text = "-" if row is None else f"{row['us']:.1f}"
                line.append(text if row is None or goal is None else f"{text}, {goal[i]}, {row['us'] / goal[i]:.2f}")
            ours = cells.get(("real", "bf16" if op == "greedy" and n <= 256 else "fp32", n, op))
            ahead = "-" if ours is None else f"{peer / ours['us']:.1f}"
            print(f"| {n} | {op} | {line[0]} | {line[1]} | {peer} | {ahead} |")


def main():
    rows = read(sys.argv[1])
    print_tables(rows, cells_of(read(sys.argv[2])) if len(sys.argv) > 2 else {})
    print_goals(cells_of(rows))
    hosts = [row["host_us"] for row in rows]
    print(f"\nHost time of a call (the least of those captured): {min(hosts):.1f} to {max(hosts):.1f} us.")


if __name__ == "__main__":
    main()
