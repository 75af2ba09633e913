#!/usr/bin/env python3
"""Tables of what bench/tandem/serve.py wrote: medians and paired ratios with an interval of 95 % (order statistics).

usage: bench/tandem/serve_summary.py FILE.jsonl...
"""
import collections
import json
import statistics
import sys


def interval(values):
    ordered = sorted(values)
    n, half = len(ordered), 0.98 * len(ordered) ** 0.5
    low, high = max(0, int(n / 2 - half)), min(n - 1, int(n / 2 + half))
    return f"{statistics.median(ordered):.3f} [{ordered[low]:.3f}, {ordered[high]:.3f}], {n} turns"


def ratios(turns, value):
    """turns: one dictionary a turn, of choice to row."""
    for choice in sorted(turns[0]):
        print(f"| {choice} | {statistics.median(value(turn[choice]) for turn in turns) / 1e3:.1f} ms |")
    singles = [name for name in ("cuda", "vulkan") if name in turns[0]]
    for choice in sorted(set(turns[0]) - set(singles)):
        for single in singles:
            print(f"| {choice} / {single} | {interval([value(t[choice]) / value(t[single]) for t in turns])} |")
        best = [min(value(turn[single]) for single in singles) for turn in turns]
        print(f"| {choice} / the better of them | {interval([value(t[choice]) / b for t, b in zip(turns, best)])} |")


def main():
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        print(f"\n# {path}")
        starts, requests, chats = (collections.defaultdict(dict) for _ in range(3))
        for row in rows:
            if row["kind"] == "start":
                starts[row["pair"]][row["choice"]] = row
            elif row["kind"] == "request":
                requests[(row["prompt"], row["answer"], row["pair"])][row["choice"]] = row
            elif row["kind"] == "chat":
                chats[row["pair"]].setdefault(row["choice"], []).append(row)
        choices = {row["choice"] for row in rows if row["kind"] != "memory"}
        for row in rows:
            if row["kind"] == "memory":
                print(f"| memory, {row['choice']} | {row['ready_mib']} MiB | {row.get('after_request_mib', '')} |")
        if starts:
            print("\n## start")
            ratios(list(starts.values()), lambda row: row["us"])
        for shape in sorted({key[:2] for key in requests}):
            turns = [turn for key, turn in requests.items() if key[:2] == shape and set(turn) == choices]
            for field in ("whole_us", "prefill_us", "decode_us", "prefill and decode"):
                print(f"\n## {shape[0]}+{shape[1]}, {field}")
                both = field == "prefill and decode"
                ratios(turns, lambda row: row["prefill_us"] + row["decode_us"] if both else row[field])
            print("tokens:", {name: sorted({turn[name]["tokens_sha256"] for turn in turns})[0] for name in choices},
                  {name: turns[0][name]["members"].get("members") for name in choices})
        length = max((len(talk) for talks in chats.values() for talk in talks.values()), default=0)
        talks = [talks for talks in chats.values() if set(talks) == choices and
                 all(len(talk) == length for talk in talks.values())]
        if talks:
            print(f"\n## chat of {length} turns, without the first, whole time")
            ratios(talks, lambda talk: sum(row["whole_us"] for row in talk[1:]))


if __name__ == "__main__":
    main()
