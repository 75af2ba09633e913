"""How the model talks: who it is, what it does not know, system prompts, styles, ways to wrap a question."""
import json
import re

from facts import COLORS, COUNTRIES, OPP
from story_words import NAMES
from dialogs_numbers import DAYS, MONTHS, arith
from dialogs_facts import Cap, an, d_animal, d_capital, d_color, d_continent, d_opp, d_qa, d_qa_pick, q_cap
from dialogs_words import d_hello
from dialogs_texts import simple_turns


def d_identity(R, name="Onebit Tiny"):
    r = R.random()
    if r < 0.7:
        return [
            (
                R.choice(
                    [
                        "Who are you?",
                        "What are you?",
                        "What is your name?",
                        "Tell me about yourself.",
                        "Introduce yourself.",
                        "Please introduce yourself.",
                        "What's your name?",
                    ]
                ),
                R.choice([f"I am {name}, a small language model trained from scratch."]),
            )
        ]
    return d_qa_pick(
        R,
        [
            "What can you do?",
            "Are you a human?",
            "Who made you?",
            "How big are you?",
            "Do you know everything?",
            "Are you always right?",
        ],
    )


NOUNS = []

TOPIC = "quantum physics;the stock market;chess openings;the history of Rome;machine learning;the French Revolution;black holes;vaccines;the economy;philosophy;jazz;photosynthesis;cryptography;calculus;taxes;car engines;nuclear power;blockchain;the Cold War;opera;genetics;rocket science;plate tectonics;politics;football rules;the Vikings;evolution;psychology;linear algebra;operating systems".split(
    ";"
)

LANGS = "Python C++ Java Rust JavaScript Go Ruby SQL Haskell Bash".split()


def d_unknown(R):
    c = R.choice(COUNTRIES)[0]
    r = R.random()
    sorry = R.choice(["I am sorry, I do not know that. I am a very small model."])
    if r < 0.25:
        q = R.choice(
            [
                "What is the population of {c}?",
                "How many people live in {c}?",
                "Who is the president of {c}?",
                "What is the currency of {c}?",
                "How big is {c}?",
                "What is the national anthem of {c}?",
                "Who is the king of {c}?",
                "Tell me about the history of {c}.",
                "What is the highest mountain in {c}?",
                "What do people eat in {c}?",
                "When did {c} become a country?",
                "What is the flag of {c}?",
            ]
        ).replace("{c}", c)
        return [(q, sorry)]
    if r < 0.35:
        return [
            (
                R.choice(
                    [
                        "What time is it?",
                        "What is the time?",
                        "What day is it today?",
                        "What is the date today?",
                        "What is the weather like today?",
                        "Will it rain tomorrow?",
                        "How is the weather?",
                        "What is in the news?",
                        "What happened today?",
                        "Who won the game last night?",
                    ]
                ),
                "I cannot know that. I have no clock and no internet.",
            )
        ]
    if r < 0.45:
        a, b = R.randint(101, 9999), R.randint(21, 9999)
        o = R.choice("+-*/")
        return [
            (
                R.choice(
                    ["What is {a} {o} {b}?", "Calculate {a} {o} {b}.", "{a} {o} {b}", "How much is {a} {o} {b}?"]
                ).format(a=a, o=o, b=b),
                "That is too hard for me. I can only work with small numbers.",
            )
        ]
    if r < 0.55:
        k = R.choice(
            [
                "programming language",
                "book",
                "film",
                "movie",
                "song",
                "car",
                "phone",
                "city",
                "football team",
                "restaurant",
                "computer",
                "game",
                "university",
                "band",
                "colour",
                "food",
                "way to learn",
                "operating system",
                "website",
                "country",
            ]
        )
        return [
            (
                R.choice(
                    [
                        f"What is the best {k}?",
                        f"Which {k} is the best?",
                        f"What is the best {k} in the world?",
                        f"Can you recommend the best {k}?",
                    ]
                ),
                f"I cannot say which {k} is the best. What do you think?",
            )
        ]
    if r < 0.65:
        l = R.choice(LANGS)
        return [
            (
                R.choice(
                    [
                        f"Write a {l} program that sorts a list.",
                        f"Write a function in {l}.",
                        f"Can you write {l} code?",
                        f"How do I read a file in {l}?",
                        f"Write code in {l} to print numbers.",
                        f"Fix this {l} code.",
                    ]
                ),
                "I am sorry, I am too small to write programs.",
            )
        ]
    if r < 0.72:
        s = R.choice(["Good morning", "How are you", "I love you", "The cat is on the table", "Where is the station"])
        l = R.choice("Chinese Japanese Arabic Russian Italian Korean Hindi Portuguese Turkish Polish".split())
        return [
            (
                R.choice([f'Translate "{s}" into {l}.', f'How do you say "{s}" in {l}?', f'What is "{s}" in {l}?']),
                f"I am sorry, I cannot translate into {l}.",
            )
        ]
    if r < 0.85:
        t = R.choice(TOPIC)
        return [
            (
                R.choice(
                    [
                        f"Explain {t}.",
                        f"Explain {t} to me.",
                        f"Tell me about {t}.",
                        f"What do you know about {t}?",
                        f"How does one learn {t}?",
                        f"Give me a lecture on {t}.",
                        f"Write an essay about {t}.",
                    ]
                ),
                f"I am sorry, I do not know much about {t}.",
            )
        ]
    if NOUNS:
        t = R.choice(NOUNS)
        return [
            (
                R.choice(
                    [
                        f"Explain how {an(t)} works.",
                        f"What do you know about {t}?",
                        f"Tell me everything about {t}.",
                        f"Who invented the {t}?",
                        f"Where can I buy {an(t)}?",
                        f"How much does {an(t)} cost?",
                        f"Write an essay about {t}.",
                    ]
                ),
                f"I am sorry, I do not know much about {t}.",
            )
        ]
    return [
        (
            R.choice(
                [
                    "Who won the world cup?",
                    "Who is the richest person?",
                    "When was the Battle of Hastings?",
                    "What is the meaning of life?",
                    "What is the square root of 1764?",
                    "Who invented the telephone?",
                    "When did the war end?",
                    "Who is the author of War and Peace?",
                    "What is love?",
                ]
            ),
            sorry,
        )
    ]


PRE = [
    "Hi! ",
    "Hello! ",
    "Hey, ",
    "Hello there. ",
    "Please help me. ",
    "I have a question. ",
    "Question: ",
    "Please tell me: ",
    "Can you help me with this? ",
    "One more thing: ",
    "Next question: ",
    "OK. ",
    "Okay, ",
    "Well, ",
    "So, ",
    "Now, ",
    "Excuse me. ",
    "Sorry to bother you. ",
    "I am curious. ",
    "Just wondering: ",
    "Let me ask you something. ",
    "Here is an easy one. ",
    "Here is my question: ",
    "Help! ",
    "Dear assistant, ",
    "Good evening. ",
    "Tell me: ",
    "I need some help. ",
    "My friend wants to know: ",
    "I am a student. ",
    "For my class: ",
    "We are playing a quiz. ",
    "Listen: ",
    "Hmm. ",
    "Thanks. ",
    "Great. ",
    "Cool. ",
    "Thank you. ",
    "Alright. ",
    "Good. ",
    "Q: ",
    "User question: ",
    "Could you answer this? ",
    "I am not sure about this: ",
    "Answer this: ",
    "Try this one. ",
]

SUF = [
    " Thanks.",
    " Thank you!",
    " Please.",
    " Please answer.",
    " I am curious.",
    " Can you tell me?",
    " Do you know?",
    " I do not remember.",
    " Please help.",
    " It is for a quiz.",
    " Thanks in advance!",
    " That is my question.",
    " I hope you know it.",
    " Keep it short.",
    " Please be brief.",
    " A short answer is fine.",
    " I am not sure.",
    " What do you think?",
]


def wrap(R, u):
    """noise around a user turn, so that unseen wordings do not confuse the model"""
    if len(u) > 220 or "\n" in u:
        return u
    rep = u.lower().startswith(("repeat", "say", "echo", "copy", "write this", "please repeat"))
    r = R.random()
    if r < 0.52:
        return u
    low = (
        lambda s: s
        if s[:2] in ("I ", "I'") or s.split()[0].rstrip(",.:'s") in PROPER_NAMES or len(s) > 1 and s[1].isupper()
        else s[0].lower() + s[1:]
    )
    if r < 0.72:
        p = R.choice(PRE)
        return p + (low(u) if p.rstrip()[-1] in ",:" and R.random() < 0.6 else u)
    if rep:
        return u
    if r < 0.82 and u[-1] in ".?!":
        return u + R.choice(SUF)
    if r < 0.87:
        return R.choice(PRE) + u + (R.choice(SUF) if u[-1] in ".?!" else "")
    if r < 0.91:
        return u[0].lower() + u[1:].rstrip("?.!")
    if r < 0.94:
        return u.rstrip("?.!")
    if r < 0.96:
        return low(u).rstrip("?.!") + ", please" + ("?" if u.endswith("?") else ".")
    if r < 0.98 and len(u) > 12:  # a typo
        i = R.randrange(4, len(u) - 3)
        if u[i].islower() and u[i + 1].islower():
            return u[:i] + u[i + 1] + u[i] + u[i + 2 :] if R.random() < 0.5 else u[:i] + u[i + 1 :]
    return u + R.choice(["", "?", "!", " ?", "  "])


PROPER_NAMES = (
    set(NAMES) | {c[0].split()[0] for c in COUNTRIES} | {c[1].split()[0] for c in COUNTRIES} | set(DAYS) | set(MONTHS)
)

SYS = [
    "You are a helpful assistant.",
    "You are a helpful assistant.",
    "You are a friendly assistant.",
    "You are a kind and helpful assistant.",
    "Answer the questions of the user.",
    "You answer questions briefly.",
    "You are Onebit Tiny, a small language model.",
    "Be polite and brief.",
    "You are a teacher.",
    "You help children learn.",
    "You are an assistant in a demo.",
]

PN = [
    "Captain Blue",
    "Robin",
    "Professor Oak",
    "Ada",
    "Luna",
    "Max",
    "Chef Rosa",
    "Sir Quack",
    "Nova",
    "Iris",
    "Bolt",
    "Sage",
    "Pixel",
    "Doctor Fern",
]

PJ = [
    "a friendly pirate",
    "a wise old teacher",
    "a cheerful robot",
    "a kind nurse",
    "a clever cat",
    "a polite butler",
    "a travel guide",
    "a librarian",
    "a cook",
    "a story teller",
    "a space explorer",
]


def persona(R):
    n = R.choice(PN) if R.random() < 0.6 else R.choice(NAMES)
    j = R.choice(PJ)
    s = R.choice([f"You are {n}, {j}.", f"Your name is {n}. You are {j}.", f"You are {j} named {n}."])
    t = []
    for _ in range(R.choice([0, 0, 1])):
        t += simple_turns(R)
    t.append(
        (
            R.choice(
                [
                    "Who are you?",
                    "What is your name?",
                    "Introduce yourself.",
                    "Tell me about yourself.",
                    "What's your name?",
                ]
            ),
            f"I am {n}, {j}.",
        )
    )
    for _ in range(R.choice([0, 1, 1])):
        t += simple_turns(R)
    return s, t


def short_word(a):
    m = re.match(r"The capital of .* is (.*?)\.?$", a)
    return m.group(1) if m else None


def styled(R):
    r = R.random()
    t = []
    if r < 0.35:
        for _ in range(R.randint(1, 3)):
            q, a, x = q_cap(R)
            t.append((q, x[1]))
            if R.random() < 0.4:
                a, b = R.choice(OPP)
                t.append((f"What is the opposite of {a}?", Cap(b)))
            if R.random() < 0.3:
                o, c = R.choice(COLORS)
                t.append((f"What colour is {o}?", Cap(c)))
            if R.random() < 0.3:
                y = arith(R)
                t.append((f"What is {y[0]} {y[2]} {y[1]}?", str(y[3])))
        return (
            R.choice(
                [
                    "Answer with one word.",
                    "Answer in one word only.",
                    "You give one-word answers.",
                    "Reply with a single word.",
                ]
            ),
            t,
        )
    if r < 0.6:
        for _ in range(R.randint(1, 2)):
            t += [(q, a.upper()) for q, a in R.choice([d_capital, d_opp, d_color, d_animal, d_hello, d_continent])(R)]
        return (
            R.choice(
                [
                    "Answer in capital letters.",
                    "Always write in capital letters.",
                    "You write everything in upper case.",
                ]
            ),
            t,
        )
    if r < 0.8:
        w = R.choice(["Meow!", "Arr!", "Beep!", "Have a nice day!", "Ho ho ho!", "Quack!"])
        for _ in range(R.randint(1, 3)):
            t += [
                (q, a.rstrip() + " " + w)
                for q, a in R.choice([d_capital, d_opp, d_color, d_animal, d_qa, d_continent, d_hello])(R)
            ]
        return R.choice([f'End every answer with "{w}"', f'Always end your answer with "{w}"']), t
    for _ in range(R.randint(1, 3)):
        q, a, x = q_cap(R)
        t.append((q, json.dumps(dict(answer=x[1]))))
        if R.random() < 0.4:
            o, c = R.choice(COLORS)
            t.append((f"What colour is {o}?", json.dumps(dict(answer=c))))
        if R.random() < 0.4:
            y = arith(R)
            t.append((f"What is {y[0]} {y[2]} {y[1]}?", json.dumps(dict(answer=y[3]))))
    return (
        R.choice(
            [
                'Answer in JSON with the key "answer".',
                'Reply only with a JSON object that has the key "answer".',
                'Return JSON with one key, "answer".',
            ]
        ),
        t,
    )


def inline_style(R):
    q, a, x = q_cap(R)
    r = R.random()
    if r < 0.5:
        return [(q + R.choice([" Answer in one word.", " One word only.", " Just the name."]), x[1])]
    y = arith(R)
    return [
        (
            f"What is {y[0]} {y[2]} {y[1]}? " + R.choice(["Just the number.", "Answer with the number only."]),
            str(y[3]),
        )
    ]
