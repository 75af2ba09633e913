#!/usr/bin/env python3
"""`1bit serve` with a tandem against each of its members alone, over HTTP and in turns: whole requests, a chat whose prompt
is cached, and the start.

usage: bench/tandem/serve.py --program 1bit --model MODEL.gguf --out FILE.jsonl [--request 8192+128]... [--chat TURNS]
       [--starts N] [--memory] [--pairs N] [--seconds N] --choice NAME=FLAGS...

Each choice is a server of its own with the flags given to `1bit serve`, all run at once, one of them has work at a time
(A B C, C B A). One JSON line a measurement. Correctness columns: tokens that were computed, cached and made, which member
computed them, and a hash of the text. --memory: what nvidia-smi says is used on the GPU with nothing running, with an empty
CUDA context, and with each server alone, ready and after a request.
"""
import argparse
import hashlib
import http.client
import json
import random
import signal
import subprocess
import sys
import time


def words(count, seed):
    """Token numbers, the same for each choice."""
    chance = random.Random(seed)
    return [chance.randrange(1000, 20000) for _ in range(count)]


def gpu_memory():
    """MiB in use on the first GPU."""
    found = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], check=True,
                           capture_output=True, text=True)
    return int(found.stdout.split()[0])


def empty_context():
    """MiB in use while another process has a CUDA context and nothing else."""
    program = ("import ctypes, sys; cuda = ctypes.CDLL('libcuda.so.1'); context = ctypes.c_void_p(); "
               "done = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)]; "
               "print('ready' if not any(done) else done, flush=True); sys.stdin.read()")
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout.readline().strip() != "ready":
            sys.exit("no CUDA context could be made")
        used = gpu_memory()
        process.stdin.close()
    return used


class Server:
    def __init__(self, program, model, name, flags, port, log):
        self.name, self.port = name, port
        self.command = [program, "serve", model, "--port", str(port), "--parallel", "1", *flags]
        self.log = open(log, "ab")
        self.process = None

    def start(self, limit=240):
        """Seconds until /health says that the model serves."""
        begin = time.perf_counter()
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)
        while time.perf_counter() - begin < limit:
            if self.process.poll() is not None:
                sys.exit(f"{self.name} ended with {self.process.returncode} before it was ready; see its log")
            try:
                if self.get("/health")[0] == 200:
                    return time.perf_counter() - begin
            except OSError:
                pass
            time.sleep(0.005)
        sys.exit(f"{self.name} was not ready after {limit} s")

    def stop(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def complete(self, prompt, answer, cached):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        body = json.dumps({"prompt": prompt, "n_predict": answer, "cache_prompt": cached, "temperature": 0,
                           "ignore_eos": True, "return_tokens": True})
        begin = time.perf_counter()
        connection.request("POST", "/completion", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        text = response.read()
        took = time.perf_counter() - begin
        if response.status != 200:
            sys.exit(f"{self.name} answered {response.status}: {text[:400]!r}")
        result = json.loads(text)
        timings = result["timings"]
        return result["tokens"], {
            "whole_us": round(took * 1e6), "prefill_us": round(timings["prompt_ms"] * 1e3),
            "decode_us": round(timings["predicted_ms"] * 1e3), "computed": timings["prompt_n"],
            "cached": timings.get("cache_n", 0), "made": timings["predicted_n"],
            "tokens_sha256": hashlib.sha256(json.dumps(result["tokens"]).encode()).hexdigest()[:16],
            "members": timings.get("onebit", {})}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--log", default="/tmp/serve-bench")
    parser.add_argument("--choice", action="append", required=True)
    parser.add_argument("--request", action="append", default=[])
    parser.add_argument("--chat", type=int, default=0)
    parser.add_argument("--starts", type=int, default=0)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=200)
    options = parser.parse_args()
    out = open(options.out, "a", encoding="utf-8")

    def put(**row):
        out.write(json.dumps(row) + "\n")
        out.flush()

    servers = []
    for i, choice in enumerate(options.choice):
        name, _, flags = choice.partition("=")
        servers.append(Server(options.program, options.model, name, flags.split(), 18400 + i, f"{options.log}-{name}.log"))

    def in_turns(pair):
        return servers if pair % 2 == 0 else servers[::-1]

    begin = time.perf_counter()
    for pair in range(-1, options.starts):
        for server in in_turns(pair):
            seconds = server.start()
            server.stop()
            if pair >= 0:
                put(kind="start", choice=server.name, pair=pair, us=round(seconds * 1e6))

    if options.memory:
        put(kind="memory", choice="nothing", ready_mib=gpu_memory())
        put(kind="memory", choice="empty CUDA context", ready_mib=empty_context())
        for server in servers:
            server.start()
            ready = gpu_memory()
            server.complete(words(2048, 1), 64, False)
            after = gpu_memory()
            shared = [line for line in server.get("/metrics")[1].decode().splitlines() if "shared_bytes" in line]
            server.stop()
            put(kind="memory", choice=server.name, ready_mib=ready, after_request_mib=after, shared=shared)

    try:
        for server in servers:
            server.start()
        # a route that idle time measures is chosen by now
        time.sleep(6)
        for pair in range(-1, options.pairs):
            if time.perf_counter() - begin > options.seconds:
                break
            for request in options.request:
                prompt, answer = (int(part) for part in request.split("+"))
                for server in in_turns(pair):
                    _, row = server.complete(words(prompt, pair * 7919 + prompt), answer, False)
                    if pair >= 0:
                        put(kind="request", choice=server.name, pair=pair, prompt=prompt, answer=answer, **row)
            if options.chat == 0:
                continue
            # the first turn is a prompt of 4096 tokens; each later one adds the answer and a question
            talks = {server.name: words(4096, pair + 17) for server in servers}
            for turn in range(options.chat):
                for server in in_turns(pair + turn):
                    talk = talks[server.name]
                    tokens, row = server.complete(talk, 64, True)
                    if pair >= 0:
                        put(kind="chat", choice=server.name, pair=pair, turn=turn, prompt=len(talk), **row)
                    talk += tokens + words(150, pair * 100 + turn)
        for server in servers:
            put(kind="metrics", choice=server.name,
                tandem=[line for line in server.get("/metrics")[1].decode().splitlines()
                        if line.startswith("onebit_tandem")])
    finally:
        for server in servers:
            server.stop()


if __name__ == "__main__":
    main()
