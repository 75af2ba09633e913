"""Figures of a model in training: loss on held-out text, perplexity as llama-perplexity counts it, answers."""
import json
import math

import numpy as np
import torch
import torch.nn.functional as F

SMALL_ANSWER = 3  # tokens, on the CPU, where the run only shows that the code works


class Evaluation:
    """data: the folder that build.py and evalset.py wrote. autocast: makes the context that training runs in."""

    def __init__(self, model, data, device, autocast):
        self.model, self.device, self.autocast = model, device, autocast
        self.on_cpu = device == "cpu"
        self.texts = {
            name: torch.from_numpy(np.load(f"{data}/val_{name}.npy").astype(np.int64))
            for name in ("prose", "stories", "dialogs")
        }
        evaluation = json.load(open(data + "/eval.json"))
        self.sets, self.samples = evaluation["sets"], evaluation["samples"]
        self.max_new, self.ends = evaluation["max_new"], (evaluation["eos"], evaluation["eot"])
        self.token_bytes = {int(i): bytes(b) for i, b in evaluation["bytes"].items()}

    def shorten(self, questions, samples):
        """Keeps so many of each set and of the samples."""
        self.sets = {name: items[:questions] for name, items in self.sets.items()}
        self.samples = self.samples[:samples]

    @torch.no_grad()
    def losses(self, length=2048, most_rows=48):
        """{text: mean loss over rows of that length}"""
        losses = {}
        for name, tokens in self.texts.items():
            rows = min(most_rows, (tokens.numel() - 1) // length)
            if rows < 1:
                continue
            inputs = tokens[: rows * length].view(rows, length).to(self.device)
            targets = tokens[1 : rows * length + 1].view(rows, length).to(self.device)
            total = 0.0
            for i in range(rows):
                with self.autocast():
                    logits = self.model.logits(inputs[i : i + 1]).float()
                total += F.cross_entropy(logits[0], targets[i]).item()
            losses[name] = round(total / rows, 4)
        return losses

    @torch.no_grad()
    def perplexities(self, context=1024):
        """What llama-perplexity prints: over the second half of each chunk, running, after each chunk."""
        tokens = self.texts["prose"][:-1]
        total, count, running = 0.0, 0, []
        first = context // 2
        for i in range(tokens.numel() // context):
            chunk = tokens[i * context : (i + 1) * context][None].to(self.device)
            with self.autocast():
                logits = self.model.logits(chunk).float()[0]
            total += F.cross_entropy(logits[first:-1], chunk[0, first + 1 :], reduction="sum").item()
            count += context - 1 - first
            running.append(round(math.exp(total / count), 3))
        return running

    @torch.no_grad()
    def greedy(self, prompts, most_new):
        """Generated ids for each prompt, a list of ids. No cache: for short texts only."""
        lengths = torch.tensor([len(p) for p in prompts], device=self.device)
        starts = lengths.clone()
        room = int(lengths.max()) + most_new
        ids = torch.zeros(len(prompts), room, dtype=torch.long, device=self.device)
        for i, prompt in enumerate(prompts):
            ids[i, : len(prompt)] = torch.tensor(prompt)
        done = torch.zeros(len(prompts), dtype=torch.bool, device=self.device)
        rows = torch.arange(len(prompts), device=self.device)
        for _ in range(most_new):
            # a multiple of 16, so that few lengths occur
            length = min(room, (int(lengths.max()) + 15) // 16 * 16)
            with self.autocast():
                hidden = self.model.hidden(ids[:, :length], compiled=False)
                logits = self.model.head(hidden[rows, lengths - 1]).float()
            chosen = torch.where(done, torch.zeros_like(lengths), logits.argmax(-1))
            ids[rows, lengths] = torch.where(done, ids[rows, lengths.clamp(max=room - 1)], chosen)
            lengths = torch.where(done, lengths, lengths + 1)
            for end in self.ends:
                done |= chosen == end
            lengths = lengths.clamp(max=room - 1)
            if bool(done.all()):
                break
        return [ids[i, starts[i] : lengths[i]].tolist() for i in range(len(prompts))]

    def text(self, ids):
        return b"".join(self.token_bytes.get(i, b"") for i in ids).decode("utf-8", "replace")

    def answers(self):
        """{set: counts and up to 12 wrong answers}, and [(prompt, answer)] of the samples."""
        results = {}
        for name, items in self.sets.items():
            if self.on_cpu and "needle" in name:
                continue
            items = items[:2] if self.on_cpu else items
            right, wrong = 0, []
            for i in range(0, len(items), 512):
                part = items[i : i + 512]
                most_new = SMALL_ANSWER if self.on_cpu else self.max_new
                for item, ids in zip(part, self.greedy([x["ids"] for x in part], most_new)):
                    answer = self.text(ids).strip()
                    if "answer" in item:
                        good = answer == item["answer"]
                    else:
                        good = item["expect"].lower() in answer.lower()
                    right += good
                    if not good and len(wrong) < 12:
                        wrong.append((item["q"], answer))
            accuracy = round(right / max(1, len(items)), 4)
            results[name] = dict(n=len(items), ok=int(right), acc=accuracy, bad=wrong)
        most_new = SMALL_ANSWER if self.on_cpu else 220
        samples = [(x["q"], self.text(self.greedy([x["ids"]], most_new)[0])) for x in self.samples]
        return results, samples
