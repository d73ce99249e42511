# SPDX-License-Identifier: Apache-2.0
"""The tables of RESULTS.md from bench_sampler's JSON: python3 benchmarks/table.py bench.json"""
import json
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    ops = list(dict.fromkeys(row["op"] for row in rows))
    for data in dict.fromkeys(row["data"] for row in rows):
        for kind in dict.fromkeys(row["type"] for row in rows):
            print(f"\n### {data}, {kind}\n\n| rows | read | " + " | ".join(ops) + " |")
            print("|" + "---|" * (len(ops) + 2))
            cells = [row for row in rows if (row["data"], row["type"]) == (data, kind)]
            for n in dict.fromkeys(row["rows"] for row in cells):
                at = {row["op"]: row for row in cells if row["rows"] == n}
                line = [f"{at[op]['us']:.1f} x{at[op]['ratio']:.2f}" if op in at else "-" for op in ops]
                print(f"| {n} | {next(iter(at.values()))['read_us']:.2f} | " + " | ".join(line) + " |")
    hosts = [row["host_us"] for row in rows]
    print(f"\nHost time of a call (the least of those captured): {min(hosts):.1f} to {max(hosts):.1f} us.")


if __name__ == "__main__":
    main()
