"""Dialogues that work on words and lists: grammar, spelling, repeating, ordering, looking up, JSON; and greetings."""
import json
import re

from facts import CATS, COUNTRIES, IRR, PLUR, PLURAL, RHYME
from story_words import NAMES
from dialogs_numbers import DAYS, numw
from dialogs_facts import Cap

WORDS = "cat dog sun moon tree house apple banana orange water river mountain flower garden window door table chair bread butter cheese honey sugar candle lantern pencil paper letter number school teacher student doctor music guitar violin piano drum trumpet castle dragon knight queen king prince princess forest meadow valley island ocean beach shell ship boat train plane rocket planet star comet cloud rain snow wind storm thunder rainbow spring summer autumn winter morning evening night friend family mother father sister brother baby child rabbit fox bear wolf lion tiger monkey elephant giraffe zebra horse cow sheep goat duck swan eagle owl robin spider bee ant butterfly frog turtle snake fish whale shark silver gold iron copper stone sand glass rope wheel clock watch mirror basket bottle bucket ladder hammer ticket market bakery library museum castle bridge tower street village city country world happy brave clever gentle quiet yellow purple green blue red".split()

WORDS = sorted(set(WORDS))


def d_gram(R):
    r = R.random()
    if r < 0.4:
        a, b = R.choice(IRR)
        return [
            (
                R.choice([f"What is the past tense of {a}?", f'What is the past of "{a}"?', f"Past tense of {a}?"]),
                f"The past tense of {a} is {b}.",
            )
        ]
    if r < 0.75:
        a, b = R.choice(PLUR)
        return [
            (
                R.choice([f"What is the plural of {a}?", f"Plural of {a}?", f'What is the plural form of "{a}"?']),
                f"The plural of {a} is {b}.",
            )
        ]
    a, b = R.choice(RHYME)
    if R.random() < 0.5:
        a, b = b, a
    return [
        (
            R.choice([f"What rhymes with {a}?", f"Give me a word that rhymes with {a}.", f"Find a rhyme for {a}."]),
            f"{Cap(b)} rhymes with {a}.",
        )
    ]


def d_spell(R):
    w = (
        R.choice(WORDS)
        if R.random() < 0.8
        else R.choice(NAMES + ["France", "Japan", "London", "Paris", "computer", "elephant", "kitchen", "language"])
    )
    r = R.random()
    if r < 0.55:
        return [
            (
                R.choice(
                    [
                        "Spell the word {w}.",
                        "How do you spell {w}?",
                        "Can you spell {w}?",
                        "Spell {w}.",
                        'Please spell "{w}".',
                        'Spell the word "{w}" for me.',
                    ]
                ).format(w=w),
                "-".join(w),
            )
        ]
    if r < 0.7:
        return [
            (
                R.choice(
                    [
                        "What is the first letter of {w}?",
                        "Which letter does {w} start with?",
                        "{w} starts with which letter?",
                    ]
                ).format(w=w),
                f"The first letter of {w} is {w[0]}.",
            )
        ]
    if r < 0.8:
        return [
            (
                R.choice(["What is the last letter of {w}?", "Which letter does {w} end with?"]).format(w=w),
                f"The last letter of {w} is {w[-1]}.",
            )
        ]
    if r < 0.9:
        return [
            (
                R.choice(["How many letters are in {w}?", "How many letters does the word {w} have?"]).format(w=w),
                f"{'-'.join(w)}: the word {w} has {len(w)} letters.",
            )
        ]
    if r < 0.95:
        return [
            (
                R.choice(
                    ["Write {w} in capital letters.", "Make {w} uppercase.", "Write the word {w} in upper case."]
                ).format(w=w),
                w.upper(),
            )
        ]
    return [
        (
            R.choice(["Spell {w} backwards.", "Write {w} backwards.", "Reverse the word {w}."]).format(w=w),
            "-".join(w[::-1]),
        )
    ]


ADJ = "red blue green old new big small happy sad quick slow kind brave cold warm soft loud tiny bright dark".split()

NOUN = "cat dog bird horse ship house tree river king queen baker robot cloud lamp garden bridge book song train moon".split()

VERB = "runs sings jumps sleeps walks dances waits falls shines swims flies reads laughs".split()

PLACEW = [
    "in the garden",
    "on the hill",
    "by the river",
    "in the city",
    "near the sea",
    "under the bridge",
    "at night",
    "in the rain",
    "after school",
    "before lunch",
]


def sent(R):
    r = R.random()
    if r < 0.5:
        return f"The {R.choice(ADJ)} {R.choice(NOUN)} {R.choice(VERB)} {R.choice(PLACEW)}."
    if r < 0.75:
        return " ".join(R.sample(WORDS, R.randint(2, 6)))
    if r < 0.9:
        return R.choice(
            [
                "Hello, world!",
                "Good morning!",
                "The quick brown fox jumps over the lazy dog.",
                "I love you.",
                "This is a test.",
                "One two three.",
                "Testing, testing.",
                "Have a nice day!",
                "Practice makes perfect.",
                "To be or not to be.",
                f"My number is {R.randint(100,99999)}.",
                f"{R.choice(NAMES)} and {R.choice(NAMES)} are friends.",
            ]
        )
    return "".join(R.choice("abcdefghijklmnopqrstuvwxyz0123456789") for _ in range(R.randint(3, 8)))


def d_repeat(R):
    s = sent(R)
    r = R.random()
    if r < 0.75:
        return [
            (
                R.choice(
                    [
                        "Repeat after me: {s}",
                        "Say: {s}",
                        "Please repeat: {s}",
                        "Repeat this: {s}",
                        "Repeat the following: {s}",
                        "Repeat after me:\n{s}",
                        "Say exactly this: {s}",
                        "Echo: {s}",
                        "Write this again: {s}",
                        'Repeat: "{q}"',
                        'Say "{q}".',
                        "Copy this: {s}",
                    ]
                ).format(s=s, q=s),
                s,
            )
        ]
    w = R.choice(WORDS)
    n = R.randint(2, 5)
    return [
        (
            R.choice(
                ["Say the word {w} {n} times.", "Write {w} {n} times.", "Repeat the word {w} {n} times."]
            ).format(w=w, n=numw(n)),
            ", ".join([w] * n),
        )
    ]


def d_hello(R):
    r = R.random()
    if r < 0.4:
        return [
            (
                R.choice(
                    [
                        "Hello",
                        "Hi",
                        "Hello!",
                        "Hi!",
                        "Hey",
                        "Hey there",
                        "Hi there!",
                        "Good morning",
                        "Good morning!",
                        "Good evening!",
                        "Good day.",
                    ]
                ),
                R.choice(
                    [
                        "Hello! How can I help you?",
                        "Hi! How can I help you today?",
                        "Hello! What would you like to talk about?",
                    ]
                ),
            )
        ]
    if r < 0.6:
        return [
            (
                R.choice(
                    ["How are you?", "How are you today?", "How do you do?", "Are you well?", "How is it going?"]
                ),
                R.choice(["I am fine, thank you. How are you?", "I am doing well, thank you. How can I help you?"]),
            )
        ]
    if r < 0.75:
        return [
            (
                R.choice(["Thanks!", "Thank you!", "Thank you very much.", "Thanks a lot."]),
                R.choice(["You are welcome!", "You are welcome. I am happy to help."]),
            )
        ]
    if r < 0.9:
        return [
            (
                R.choice(["Goodbye", "Bye!", "See you later.", "Good night!", "Goodbye!", "Have a nice day!"]),
                R.choice(["Goodbye! Have a nice day.", "Goodbye! Come back any time."]),
            )
        ]
    return [
        (
            R.choice(["Can you help me?", "Help!", "I need help.", "Please help me."]),
            "Of course. What do you need help with?",
        )
    ]


FAV = {
    "colour": "red blue green yellow purple orange pink".split(),
    "animal": "cat dog horse rabbit lion owl fox".split(),
    "food": "pizza soup bread cheese rice pasta cake".split(),
    "fruit": CATS["fruit"],
    "season": CATS["season"],
    "day": DAYS,
    "number": [str(i) for i in range(1, 100)],
    "city": [c[1] for c in COUNTRIES[:80] if len(c[1]) < 12],
    "sport": CATS["sport"],
}


def d_kv(R, nmax=8):
    n = R.randint(2, nmax)
    names = R.sample(NAMES, min(n, len(NAMES)))
    k = R.choice(["colour", "animal", "food", "number", "city", "fruit"])
    vals = [R.choice(FAV[k]) for _ in names]
    sty = R.random()
    i = R.randrange(len(names))
    if sty < 0.4:
        tx = "\n".join(f"{a}: {v}" for a, v in zip(names, vals))
        u = f"Here is a list of names and their favourite {k}.\n{tx}\n"
    elif sty < 0.7:
        tx = " ".join(f"The favourite {k} of {a} is {v}." for a, v in zip(names, vals))
        u = tx + "\n"
    else:
        tx = "\n".join(f"- {a} likes {v}." for a, v in zip(names, vals))
        u = f"Read these notes about {k}s:\n{tx}\n" if not k.endswith("y") else f"Read these notes:\n{tx}\n"
    t = [
        (
            u + R.choice([f"What is the favourite {k} of {names[i]}?", f"Which {k} does {names[i]} like?"]),
            f"The favourite {k} of {names[i]} is {vals[i]}.",
        )
    ]
    while R.random() < 0.4 and len(t) < 4:
        j = R.randrange(len(names))
        t.append(
            (R.choice([f"And of {names[j]}?", f"And {names[j]}?"]), f"The favourite {k} of {names[j]} is {vals[j]}.")
        )
    return t


def d_json(R):
    r = R.random()
    n = R.choice(NAMES)
    a = R.randint(3, 90)
    c = R.choice(COUNTRIES)
    if r < 0.3:
        return [
            (
                R.choice(
                    [
                        f"Give me a JSON object with name {n} and age {a}.",
                        f"Write JSON with the name {n} and the age {a}.",
                        f"Make a JSON object: name is {n}, age is {a}.",
                    ]
                ),
                json.dumps(dict(name=n, age=a)),
            )
        ]
    if r < 0.6:
        ct = c[1] if len(c[1]) < 14 else "Paris"
        return [
            (
                R.choice(
                    ["Extract the data as JSON: ", "Turn this into JSON: ", "Return name, age and city as JSON. "]
                )
                + R.choice(
                    [
                        f"{n} is {a} years old and lives in {ct}.",
                        f"{n}, who is {a} years old, lives in {ct}.",
                        f"My name is {n}, I am {a} and I live in {ct}.",
                    ]
                ),
                json.dumps(dict(name=n, age=a, city=ct)),
            )
        ]
    if r < 0.8:
        k = R.choice(list(CATS))
        m = R.randint(2, min(4, len(CATS[k])))
        i0 = R.randrange(len(CATS[k]))
        xs = [CATS[k][(i0 + j) % len(CATS[k])] for j in range(m)]
        return [
            (
                R.choice(
                    [
                        f"Give me a JSON array of {numw(m)} {PLURAL[k]}.",
                        f"List {numw(m)} {PLURAL[k]} as a JSON array.",
                        f"Return {numw(m)} {PLURAL[k]} as JSON.",
                    ]
                ),
                json.dumps(xs),
            )
        ]
    return [
        (
            R.choice(
                [
                    f"Answer with JSON: what is the capital of {c[0]}?",
                    f"What is the capital of {c[0]}? Answer as JSON.",
                    f"Give me the capital of {c[0]} as JSON.",
                ]
            ),
            json.dumps(dict(country=re.sub("^the ", "", c[0]), capital=c[1])),
        )
    ]


def d_sentence(R):
    w = R.choice(NOUN)
    return [
        (
            R.choice(
                [
                    f"Write a sentence with the word {w}.",
                    f"Use the word {w} in a sentence.",
                    f"Make a sentence with {w}.",
                ]
            ),
            f"The {R.choice(ADJ)} {w} {R.choice(VERB)} {R.choice(PLACEW)}.",
        )
    ]


def d_order(R):
    r = R.random()
    if r < 0.5:
        xs = R.sample(range(0, 50), R.randint(3, 5))
        up = R.random() < 0.6
        return [
            (
                R.choice(["Sort these numbers: {l}.", "Put these numbers in order: {l}."]).format(
                    l=", ".join(map(str, xs))
                )
                if up
                else f"Sort these numbers from large to small: {', '.join(map(str,xs))}.",
                ", ".join(map(str, sorted(xs, reverse=not up))),
            )
        ]
    if r < 0.8:
        xs = R.sample(WORDS, R.randint(2, 4))
        return [(f"Put these words in alphabetical order: {', '.join(xs)}.", ", ".join(sorted(xs)))]
    xs = R.sample(range(0, 100), R.randint(3, 5))
    mx = R.random() < 0.5
    return [
        (
            f"Which is the {'largest' if mx else 'smallest'} of these numbers: {', '.join(map(str,xs))}?",
            f"The {'largest' if mx else 'smallest'} number is {max(xs) if mx else min(xs)}.",
        )
    ]
