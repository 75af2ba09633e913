"""Which documents are kept out of training: whole ones, of three sources in the public domain."""
import random

SEPARATOR = "\n\x1e\n"
# characters of each source
SIZES = (("lit_austen", 160_000), ("sqlite", 80_000), ("factbook", 60_000))


def read_documents(path):
    return [d for d in open(path).read().split(SEPARATOR) if d.strip()]


def pick(documents, size):
    """Indices of documents, drawn from a fixed seed until they have more characters than size."""
    order = list(range(len(documents)))
    random.Random(5).shuffle(order)
    picked, characters = [], 0
    for index in order:
        if characters > size:
            break
        picked.append(index)
        characters += len(documents[index])
    return sorted(picked)
