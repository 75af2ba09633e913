#!/usr/bin/env python3
"""Medians, ratios and 95 % intervals of tandem-turns' output: summary.py FILE... [--base CHOICE]"""
import json
import random
import statistics
import sys


def interval(values, seed=1):
    """Bootstrap interval of the median."""
    generator = random.Random(seed)
    medians = sorted(statistics.median(generator.choices(values, k=len(values))) for _ in range(2000))
    return medians[49], medians[1949]


def main():
    files = [a for a in sys.argv[1:] if not a.startswith("--")]
    rows = [json.loads(line) for name in files for line in open(name) if line.startswith("{")]
    turns = [r for r in rows if r["kind"] == "turn"]
    shapes = sorted({(r["prompt"], r["answer"]) for r in turns})
    for prompt, answer in shapes:
        mine = [r for r in turns if (r["prompt"], r["answer"]) == (prompt, answer)]
        choices = list(dict.fromkeys(r["choice"] for r in mine))
        print(f"\n## {prompt}+{answer}\n\n| choice | prefill tokens/s | decode tokens/s | whole ms | turns |\n|---|---|---|---|---|")
        by = {c: {r["pair"]: r for r in mine if r["choice"] == c} for c in choices}
        whole = {c: {p: r["prefill_us"] + r["decode_us"] for p, r in by[c].items()} for c in choices}
        for c in choices:
            pre = statistics.median(r["prefill_us"] for r in by[c].values())
            dec = statistics.median(r["decode_us"] for r in by[c].values())
            print(f"| {c} | {prompt / pre * 1e6:,.0f} | {answer / dec * 1e6 if answer else 0:,.1f} |"
                  f" {statistics.median(whole[c].values()) / 1000:.2f} | {len(by[c])} |")
        print("\n| ratio of rates, paired | prefill | decode | whole time |\n|---|---|---|---|")
        for a in choices:
            for b in choices:
                if a == b or not a.startswith("tandem"):
                    continue
                pairs = sorted(set(by[a]) & set(by[b]))
                cells = []
                for key in ("prefill_us", "decode_us"):
                    ratios = [by[b][p][key] / by[a][p][key] for p in pairs if by[a][p][key] > 0]
                    low, high = interval(ratios)
                    cells.append(f"{statistics.median(ratios):.4f} [{low:.4f}, {high:.4f}]")
                ratios = [whole[a][p] / whole[b][p] for p in pairs]
                low, high = interval(ratios)
                print(f"| {a} / {b} | {cells[0]} | {cells[1]} | {statistics.median(ratios):.4f} [{low:.4f}, {high:.4f}] |")
        best = {}
        for p in sorted(set.intersection(*[set(v) for v in by.values()])):
            alone = [c for c in choices if not c.startswith("tandem")]
            if alone:
                best[p] = min(by[c][p]["prefill_us"] for c in alone) + min(by[c][p]["decode_us"] for c in alone)
        for c in choices:
            if c.startswith("tandem") and best:
                ratios = [whole[c][p] / best[p] for p in best]
                low, high = interval(ratios)
                print(f"| {c} / (best prefill + best decode of a member alone) | | | {statistics.median(ratios):.4f} [{low:.4f}, {high:.4f}] |")
    print("\n## Correctness\n\n| choice | against | prompt | mean KL | max KL | top-1 | logit deviation |\n|---|---|---|---|---|---|---|")
    for r in rows:
        if r["kind"] == "compare":
            print(f"| {r['choice']} | {r['reference']} | {r['prompt']} | {r['mean_kl']:.3g} | {r['max_kl']:.3g} |"
                  f" {r['same_top']} of {r['rows']} ({r['ties']} ties) | {r['logit_deviation']:.2f} |")
    print()
    for r in rows:
        if r["kind"] in ("load", "counts"):
            print("    " + json.dumps(r))


if __name__ == "__main__":
    main()
