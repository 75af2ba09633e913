"""Chat with a running llama.cpp server, greedily."""
import json
import urllib.request


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=300))


def complete(url, messages, max_tokens=60, **options):
    """The answer's text and the usage."""
    body = dict(messages=messages, temperature=0, max_tokens=max_tokens, **options)
    answer = post(url + "/v1/chat/completions", body)
    return answer["choices"][0]["message"]["content"], answer["usage"]


def as_messages(turns, system=None):
    """User and assistant in turns."""
    messages = [dict(role="system", content=system)] if system else []
    return messages + [dict(role=("user", "assistant")[i % 2], content=turn) for i, turn in enumerate(turns)]
