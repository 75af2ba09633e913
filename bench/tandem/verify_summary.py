#!/usr/bin/env python3
"""One line of a table from what `1bit verify --json` wrote: verify_summary.py NAME FILE.json STATUS"""
import json
import sys


def main():
    name, path, status = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    cases = report["cases"]
    mean = max(cases, key=lambda case: case["tested"]["mean_kl"])
    most = max(case["tested"]["max_kl"] for case in cases)
    usual = report["usual"]
    different = sum(case["different"] for case in cases)
    positions = sum(case["tested"]["positions"] - case["tested"]["ties"] for case in cases)
    tokens = ", ".join(f"{one['member']} {one['prefill']}+{one['decode']}" for one in report["tokens"])
    print(f"| {name} | {len(cases)} cases | mean KL at most {mean['tested']['mean_kl']:.3g}, largest {most:.3g} |"
          f" the two members: mean {usual['mean_kl']:.3g}, largest {usual['max_kl']:.3g} |"
          f" other best: {different} of {positions} | {tokens} | exit {status} |")


if __name__ == "__main__":
    main()
