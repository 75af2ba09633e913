"""Dialogues about a text or an earlier turn: stories, reading, summaries, poems, memory, a needle in a long text."""
import re

import stories as S
from story_words import ANAMES, ANIMALS, BOYS, GIRLS, NAMES, OBJ
from gram import expand
from dialogs_numbers import d_arith, d_compare, d_count, d_days, d_evenodd
from dialogs_facts import (
    Cap,
    an,
    d_animal,
    d_capital,
    d_capital_rev,
    d_cat,
    d_color,
    d_continent,
    d_joke,
    d_mix,
    d_opp,
    d_qa,
    d_size,
    d_yesno,
)
from dialogs_words import FAV, WORDS, d_gram, d_hello, d_repeat, d_spell


def d_story(R):
    r = R.random()
    if r < 0.45:
        kind = R.choice(list(ANIMALS)) if R.random() < 0.6 else R.choice(["girl", "boy"])
        withobj = R.random() < 0.5
        ob = R.choice(OBJ) if withobj else None
        pn = R.choice(["lost", "newfriend", "saving", "birthday", "gift"]) if withobj else None
        nm = None
        if R.random() < 0.3:
            nm = R.choice(ANAMES) if kind in ANIMALS else R.choice(GIRLS if kind == "girl" else BOYS)
        s = S.story(R, kind=kind, obj=ob, plotname=pn, name=nm)
        q = R.choice(
            [
                "Tell me a [short |little |]story about {k}.",
                "Write a [short |little |]story about {k}.",
                "Can you tell me a story about {k}?",
                "Please write a story about {k}.",
                "I want to hear a story about {k}.",
                "Make up a story about {k}.",
            ]
        )
        k = an(kind) + (f" named {nm}" if nm else "") + (f" and {an(ob)}" if withobj else "")
        q = expand(q.replace("{k}", k), {}, R)
    elif r < 0.7:
        s = S.story(R)
        q = R.choice(
            [
                "Tell me a story.",
                "Tell me a short story.",
                "Write a story.",
                "Write a short story.",
                "Can you tell me a story?",
                "I want to hear a story.",
                "Please tell me a bedtime story.",
                "Story, please.",
                "Write a story for children.",
                "Once upon a time...",
            ]
        )
    elif r < 0.85:
        s = S.story(R)
        nm = s["ctx"]["a"]
        b = s["ctx"]["b"]
        q = R.choice(
            [
                f"Tell me a story about {nm} and {b}.",
                f"Write a story about {nm} and {b}.",
                f"Tell me a story with {nm} in it." if False else f"Write a short story about {nm} and {b}.",
            ]
        )
    else:
        s = S.story(R)
        first, rest = split_first(s["text"])
        s = dict(s)
        if not rest:
            return d_story(R)
        q = (
            R.choice(
                ["Continue this story: ", "Finish this story: ", "What happens next? ", "Go on with the story: "]
            )
            + first
        )
        s["text"] = rest
    a = s["text"]
    if R.random() < 0.15:
        a = "Title: " + s["title"] + "\n\n" + a
    t = [(q, a)]
    while R.random() < 0.35 and len(t) < 4:
        if R.random() < 0.7:
            qq, aa, _ = R.choice(s["qa"])
            if (qq, aa) not in t and not q.startswith(("Cont", "Fin", "What", "Go")):
                t.append((qq, aa))
            else:
                break
        else:
            t.append(
                (
                    R.choice(
                        ["What is a good title for this story?", "Give the story a title.", "What is the title?"]
                    ),
                    R.choice([f"A good title is \"{s['title']}\"."]),
                )
            )
            break
    return t


def split_first(t):
    m = list(re.finditer(r"[.!?]\"? ", t))
    if len(m) < 6:
        return t, ""
    k = m[2].end()
    return t[:k].strip(), t[k:].strip()


def d_reading(R, long=False):
    if long:
        s = S.long_story(R, R.randint(3, 6))
        ch, qs = R.choice(s["qa"])
        q, a, sh = R.choice(qs)
        if s["heads"]:
            q = R.choice(
                [
                    f'In the chapter "{ch}", ' + q[0].lower() + q[1:] if not q.split()[0] in ("x",) else q,
                    f'In "{ch}": {q}',
                ]
            )
        else:
            s = S.story(R)
            q, a, sh = R.choice(s["qa"])
    else:
        s = S.story(R)
        q, a, sh = R.choice(s["qa"])
    txt = s["text"]
    if R.random() < 0.6:
        u = (
            R.choice(
                [
                    "Read this story and answer the question.\n\n",
                    "Here is a story.\n\n",
                    "Story:\n",
                    "Read the text:\n\n",
                    "",
                ]
            )
            + txt
            + "\n\n"
            + R.choice(["Question: ", "", "Now answer: "])
            + q
        )
    else:
        u = (
            R.choice(["Answer this question about the story below: ", "Question: "])
            + q
            + "\n\n"
            + R.choice(["Story: ", "Text:\n", ""])
            + txt
        )
    t = [(u, a)]
    if not long and R.random() < 0.4:
        o = [x for x in s["qa"] if x[0] != q]
        if o:
            x = R.choice(o)
            t.append((x[0], x[1]))
    return t


def d_summ(R):
    s = S.story(R)
    c = s["ctx"]
    return (
        [
            (
                R.choice(
                    [
                        "What is a good title for this story?\n\n",
                        "Give this story a title:\n\n",
                        "Write a title for this text:\n\n",
                    ]
                )
                + s["text"],
                s["title"],
            )
        ]
        if R.random() < 0.6
        else [
            (
                R.choice(
                    [
                        "Who is in this story?\n\n",
                        "Name the main character of this story:\n\n",
                        "Who is this story about?\n\n",
                    ]
                )
                + s["text"],
                f"The story is about {c['a']}.",
            )
        ]
    )


POEM = [
    ("The {n1} is {a1}, the {n2} is {a2},", "{L}"),
]

RW = [
    ("bright", "night"),
    ("day", "play"),
    ("blue", "you"),
    ("sky", "fly"),
    ("sea", "free"),
    ("tree", "bee"),
    ("sun", "fun"),
    ("rain", "again"),
    ("snow", "glow"),
    ("song", "long"),
    ("star", "far"),
    ("ground", "sound"),
    ("deep", "sleep"),
    ("grow", "slow"),
    ("rose", "knows"),
    ("light", "sight"),
]


def d_poem(R):
    n = R.choice(
        "the moon;the sea;the rain;a cat;a bird;the sun;spring;winter;a tree;the wind;a star;a river;the night;snow;a flower;my friend".split(
            ";"
        )
    )
    T = n if n.startswith(("the", "a ", "my")) else n
    (a, b), (c, d) = R.sample(RW, 2)
    while a in n or b in n or c in n or d in n:
        (a, b), (c, d) = R.sample(RW, 2)
    C_ = T[0].upper() + T[1:]
    l1 = {
        "bright": f"Oh, {T}, you are so warm and bright,",
        "day": f"I think of {T} every day,",
        "blue": f"I think of {T} and skies of blue,",
        "sky": f"I see {T} below the sky,",
        "sea": f"I dream of {T} beside the sea,",
        "tree": f"I find {T} behind the tree,",
        "sun": f"I greet {T} beneath the sun,",
        "rain": f"I think of {T} in the rain,",
        "snow": f"I look for {T} in the snow,",
        "song": f"{C_} has a quiet song,",
        "star": f"{C_} is like a little star,",
        "ground": f"I look for {T} all around,",
        "deep": f"My love for {T} is very deep,",
        "grow": f"{C_} can help my garden grow,",
        "rose": f"{C_} is sweeter than a rose,",
        "light": f"{C_} can fill my heart with light,",
    }[a]
    e = {
        "night": "it stays with me all through the night.",
        "play": "and children come outside to play.",
        "you": "and every song I sing for you.",
        "fly": "and in my dreams I learn to fly.",
        "free": "it makes me happy, light and free.",
        "bee": "and listen to the busy bee.",
        "fun": "and all the world is full of fun.",
        "again": "and smile and say its name again.",
        "glow": "and see the quiet windows glow.",
        "long": "I stand and listen all day long.",
        "far": "and wonder where its secrets are.",
        "sound": "and hear a soft and gentle sound.",
        "sleep": "and then I close my eyes and sleep.",
        "slow": "and all the hours are soft and slow.",
        "knows": "it tells me all the things it knows.",
        "sight": "and oh, it is a lovely sight.",
    }
    l3 = {
        "bright": "The morning comes so clear and bright,",
        "day": "I keep it with me every day,",
        "blue": "The hills are green, the air is blue,",
        "sky": "I lift my head and see the sky,",
        "sea": "It sings to me beside the sea,",
        "tree": "I sit below the apple tree,",
        "sun": "It dances in the golden sun,",
        "rain": "It whispers softly in the rain,",
        "snow": "It sparkles like the winter snow,",
        "song": "It hums a little happy song,",
        "star": "It shines just like a silver star,",
        "ground": "I leave my footprints on the ground,",
        "deep": "The evening shadows fall so deep,",
        "grow": "I watch the little branches grow,",
        "rose": "It smells as sweet as any rose,",
        "light": "It fills my room with gentle light,",
    }
    return [
        (
            R.choice(
                [
                    "Write a poem about {n}.",
                    "Write a short poem about {n}.",
                    "Can you write a poem about {n}?",
                    "Tell me a poem about {n}.",
                ]
            ).format(n=n),
            "\n".join([l1, e[b][0].upper() + e[b][1:], l3[c], e[d][0].upper() + e[d][1:]]),
        )
    ]


def mem_item(R):
    r = R.random()
    if r < 0.3:
        n = R.choice(NAMES)
        return (
            R.choice(
                [
                    "My name is {n}.",
                    "Hi, I am {n}.",
                    "Hello, my name is {n}.",
                    "I am {n}.",
                    "You can call me {n}.",
                    "Hi! My name is {n}.",
                ]
            ).format(n=n),
            R.choice([f"Nice to meet you, {n}!", f"Hello, {n}! How can I help you?"]),
            R.choice(
                ["What is my name?", "Do you remember my name?", "What's my name?", "Who am I?", "Tell me my name."]
            ),
            f"Your name is {n}.",
        )
    if r < 0.6:
        k = R.choice(list(FAV))
        v = R.choice(FAV[k])
        return (
            R.choice([f"My favourite {k} is {v}.", f"I like {v}. It is my favourite {k}."]),
            R.choice([f"I will remember that your favourite {k} is {v}.", f"{Cap(v)} is a nice choice!"]),
            R.choice(
                [f"What is my favourite {k}?", f"Do you remember my favourite {k}?", f"Which {k} do I like best?"]
            ),
            f"Your favourite {k} is {v}.",
        )
    if r < 0.75:
        a = R.randint(5, 90)
        return (
            R.choice([f"I am {a} years old.", f"My age is {a}."]),
            R.choice(["Thank you for telling me.", f"I will remember that you are {a} years old."]),
            R.choice(["How old am I?", "What is my age?"]),
            f"You are {a} years old.",
        )
    if r < 0.9:
        w = R.choice(WORDS) + R.choice(["", " " + R.choice(WORDS)]) if R.random() < 0.7 else str(R.randint(100, 9999))
        k = R.choice(["secret word", "code word", "password", "magic word"])
        return (
            R.choice([f"The {k} is {w}.", f"Remember this: the {k} is {w}.", f"Please remember the {k}: {w}"]),
            R.choice([f"I will remember that the {k} is {w}.", "I will remember it."]),
            R.choice([f"What is the {k}?", f"What was the {k}?", f"Tell me the {k}."]),
            f"The {k} is {w}.",
        )
    n = R.choice(NAMES)
    p = R.choice(["dog", "cat", "horse", "rabbit", "parrot", "hamster"])
    return (
        R.choice([f"I have a {p} named {n}.", f"My {p} is called {n}."]),
        R.choice([f"{n} is a lovely name for a {p}!", "How nice!"]),
        R.choice([f"What is the name of my {p}?", f"What is my {p} called?"]),
        f"Your {p} is called {n}.",
    )


def d_memory(R):
    k = R.choice([1, 1, 2, 3])
    its = []
    for _ in range(k):
        m = mem_item(R)
        if all(m[2].split()[-1] != x[2].split()[-1] and m[3].split()[1] != x[3].split()[1] or True for x in its):
            its.append(m)
    # avoid contradictions: distinct answer prefixes
    key = lambda m: "age" if m[3].startswith("You are") else " ".join(m[3].split()[:3])
    seen = set()
    its = [m for m in its if not (key(m) in seen or seen.add(key(m)))]
    t = [(m[0], m[1]) for m in its]
    for _ in range(R.choice([0, 0, 1, 1, 2, 3, 4])):
        t += simple_turns(R)
    R.shuffle(its)
    for m in its:
        t.append((m[2], m[3]))
    return t


def d_needle(R, filler):
    w = (
        R.choice(WORDS) + " " + R.choice(WORDS)
        if R.random() < 0.5
        else str(R.randint(1000, 99999))
        if R.random() < 0.5
        else R.choice(WORDS)
    )
    k = R.choice(
        ["secret word", "code word", "password", "magic word", "secret number" if w.isdigit() else "secret word"]
    )
    ps = filler.split("\n\n")
    i = R.randint(0, len(ps))
    ps = (
        ps[:i] + [R.choice([f"The {k} is {w}.", f"Remember: the {k} is {w}.", f"Note that the {k} is {w}."])] + ps[i:]
    )
    return [
        (
            R.choice(["Read this text.\n\n", "Here is a long text.\n\n", "Text:\n\n", ""])
            + "\n\n".join(ps)
            + "\n\n"
            + R.choice([f"What is the {k}?", f"Question: What is the {k}?", f"Tell me the {k} that is in the text."]),
            f"The {k} is {w}.",
        )
    ]


def simple_turns(R):
    return R.choices(
        [
            d_capital,
            d_capital_rev,
            d_continent,
            d_arith,
            d_opp,
            d_color,
            d_animal,
            d_cat,
            d_days,
            d_count,
            d_yesno,
            d_qa,
            d_spell,
            d_gram,
            d_hello,
            d_repeat,
            d_joke,
            d_size,
            d_compare,
            d_evenodd,
            d_mix,
        ],
        [10, 2, 3, 6, 4, 3, 4, 4, 3, 3, 2, 8, 3, 3, 2, 3, 1, 1, 1, 1, 1],
    )[0](R)
