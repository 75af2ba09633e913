"""Dialogues about the tables of facts.py: capitals, opposites, colours, animals, questions with one answer, definitions."""

from facts import ANIM, CATS, COLORS, COUNTRIES, JOKES, OPP, PLURAL, QA, RIDDLES, SIZES, YESNO
from dialogs_numbers import numw

CAP_TRAIN = [
    "What is the capital of {c}?",
    "What's the capital of {c}?",
    "What is the capital city of {c}?",
    "What's the capital city of {c}?",
    "Which city is the capital of {c}?",
    "Tell me the capital of {c}.",
    "Please tell me the capital of {c}.",
    "Name the capital of {c}.",
    "Name the capital city of {c}.",
    "Do you know the capital of {c}?",
    "Can you tell me the capital of {c}?",
    "Could you tell me the capital of {c}?",
    "I want to know the capital of {c}.",
    "I would like to know the capital of {c}.",
    "What city is the capital of {c}?",
    "capital of {c}?",
    "Capital of {c}",
    "the capital of {c}?",
    "what is the capital of {c}",
    "whats the capital of {c}",
    "Give me the capital of {c}.",
    "The capital of {c} is what?",
    "What is {c}'s capital?",
    "What is {c}'s capital city?",
    "{C}: what is the capital?",
    "Which city is {c}'s capital?",
    "Hi! What is the capital of {c}?",
    "Hello, what is the capital of {c}?",
    "Hey, do you know what the capital of {c} is?",
    "Can you tell me what the capital of {c} is?",
    "Question: What is the capital of {c}?",
    "Please answer: what is the capital of {c}?",
    "I am learning geography. What is the capital of {c}?",
    "What do you call the capital of {c}?",
    "For a quiz: what is the capital of {c}?",
    "Can you name the capital of {c}?",
    "Say the capital of {c}.",
    "Help me. What is the capital of {c}?",
    "Where is the government of {c}? I mean the capital city.",
    "My teacher asked: what is the capital of {c}?",
    "If I go to the capital of {c}, which city do I visit?",
    "I am writing about {c}. What is its capital?",
    "Tell me, what is the capital of {c}?",
    "So what is the capital of {c}?",
    "Let us talk about {c}. What is the capital?",
]

CAP_HELD = [
    "I forgot the capital of {c}. What is it?",
    "Quick question: what is {c}'s capital city called?",
    "Remind me, which city is the capital of {c}?",
    "Could you please say what the capital of {c} is?",
    "My homework asks for the capital of {c}. Which city is it?",
    "Good morning! I need the name of the capital of {c}, please.",
    "Do you happen to know which city is the capital of {c}?",
    "In one sentence, tell me the capital city of {c}.",
]


def Cap(c):
    return c[0].upper() + c[1:]


def capans(c, k):
    return f"The capital of {c} is {k}."


def fixdot(s):
    return s.replace("..", ".")


def q_cap(R, c=None):
    x = c or R.choice(COUNTRIES)
    t = R.choice(CAP_TRAIN)
    return t.replace("{c}", x[0]).replace("{C}", Cap(x[0])), fixdot(capans(x[0], x[1])), x


def d_capital(R):
    q, a, x = q_cap(R)
    turns = [(q, a)]
    while R.random() < 0.35 and len(turns) < 5:
        r = R.random()
        y = R.choice(COUNTRIES)
        if r < 0.5:
            turns.append(
                (
                    R.choice(
                        [
                            "And {c}?",
                            "And the capital of {c}?",
                            "What about {c}?",
                            "And what about {c}?",
                            "Now {c}.",
                            "And of {c}?",
                            "How about {c}?",
                        ]
                    ).replace("{c}", y[0]),
                    fixdot(capans(*y[:2])),
                )
            )
            x = y
        elif r < 0.75:
            turns.append(
                (
                    R.choice(
                        [
                            "Which continent is it in?",
                            "What continent is that country in?",
                            "On which continent is {c}?",
                            "Where is {c}?",
                            "And where is that country?",
                        ]
                    ).replace("{c}", x[0]),
                    R.choice([f"{Cap(x[0])} is in {x[2]}."]),
                )
            )
        elif r < 0.9:
            turns.append(
                (
                    R.choice(["Which country did I just ask about?", "What country did I ask about?"]),
                    f"You asked about {x[0]}.",
                )
            )
        else:
            turns.append(
                (
                    R.choice(["Thanks!", "Thank you.", "Great, thanks."]),
                    R.choice(["You are welcome!", "You are welcome. Do you have another question?"]),
                )
            )
    return turns


def d_capital_rev(R):
    x = R.choice(COUNTRIES)
    return [
        (
            R.choice(
                [
                    "{k} is the capital of which country?",
                    "Which country has {k} as its capital?",
                    "Which country is {k} the capital of?",
                    "In which country is {k} the capital?",
                    "What country has the capital {k}?",
                ]
            ).replace("{k}", x[1]),
            fixdot(f"{x[1]} is the capital of {x[0]}."),
        )
    ]


def d_continent(R):
    x = R.choice(COUNTRIES)
    if R.random() < 0.3:
        k = R.choice(["Africa", "Asia", "Europe", "North America", "South America", "Oceania"])
        if R.random() < 0.5:
            k = x[2]
        q = R.choice(["Is {c} in {k}?", "Is {c} a country in {k}?"]).replace("{c}", x[0]).replace("{k}", k)
        return [(q, f"Yes, {x[0]} is in {x[2]}." if k == x[2] else f"No, {x[0]} is in {x[2]}.")]
    return [
        (
            R.choice(
                [
                    "Which continent is {c} in?",
                    "On which continent is {c}?",
                    "Where is {c}?",
                    "In which part of the world is {c}?",
                    "What continent is {c} on?",
                    "Where can I find {c}?",
                ]
            ).replace("{c}", x[0]),
            f"{Cap(x[0])} is in {x[2]}.",
        )
    ]


FAKE = "Atlantis Zubrowka Narnia Wakanda Oz Lilliput Elbonia Ruritania Freedonia Genovia Blorland Tamonia Verdavia Zanthia Krakozhia Moldania Fantasia Plutonia Bluvia Orlandia".split()


def d_fakecap(R):
    c = R.choice(FAKE)
    if R.random() < 0.3:
        c = (
            R.choice(["B", "D", "F", "G", "K", "L", "M", "N", "P", "R", "S", "T", "V", "Z"])
            + R.choice(["al", "or", "en", "im", "ur", "ast", "olv", "and"])
            + R.choice(["via", "nia", "land", "stan", "oria", "dor", "mark"])
        )
    return [(R.choice(CAP_TRAIN[:12]).replace("{c}", c), f"I do not know a country called {c}.")]


def d_opp(R):
    def one():
        a, b = R.choice(OPP)
        if R.random() < 0.5 and a not in ("doctor",):
            a, b = b, a
        return a, b

    a, b = one()
    t = [
        (
            R.choice(
                [
                    "What is the opposite of {a}?",
                    "What's the opposite of {a}?",
                    "Opposite of {a}?",
                    "Tell me the opposite of {a}.",
                    "Name the opposite of {a}.",
                    'What is the opposite of "{a}"?',
                    "Give me the opposite of {a}.",
                    "Which word means the opposite of {a}?",
                    "What word is the opposite of {a}?",
                    "Can you tell me the opposite of {a}?",
                    "I need the opposite of {a}.",
                    "Do you know the opposite of the word {a}?",
                    "Find the opposite of {a}.",
                    "The opposite of {a} is what?",
                    "{a}: what is the opposite?",
                    "Say the opposite of {a}.",
                    "Which word is opposite to {a}?",
                    'Please give me the opposite of "{a}".',
                ]
            ).format(a=a),
            f"The opposite of {a} is {b}.",
        )
    ]
    while R.random() < 0.3 and len(t) < 4:
        a, b = one()
        t.append(
            (
                R.choice(["And {a}?", "What about {a}?", "And the opposite of {a}?"]).format(a=a),
                f"The opposite of {a} is {b}.",
            )
        )
    return t


def d_color(R):
    o, c = R.choice(COLORS)
    cw = R.choice(["colour", "colour", "color"])
    t = [
        (
            R.choice(
                [
                    "What {w} is {o}?",
                    "What is the {w} of {o}?",
                    "Which {w} is {o}?",
                    "What {w} does {o} have?",
                    "Tell me the {w} of {o}.",
                    "{o}: which {w}?",
                    "Do you know the {w} of {o}?",
                    "Can you tell me what {w} {o} is?",
                    "I would like to know the {w} of {o}.",
                    "If I look at {o}, what {w} do I see?",
                    "What {w} would you paint {o}?",
                    "Name the {w} of {o}.",
                    "The {w} of {o} is what?",
                    "What is the usual {w} of {o}?",
                ]
            ).format(w=cw, o=o),
            f"{Cap(o)} is {c}.",
        )
    ]
    if R.random() < 0.25:
        o, c = R.choice(COLORS)
        t.append((f"And {o}?", f"{Cap(o)} is {c}."))
    return t


MIX = {
    ("red", "blue"): "purple",
    ("red", "yellow"): "orange",
    ("blue", "yellow"): "green",
    ("red", "white"): "pink",
    ("black", "white"): "grey",
}


def d_mix(R):
    (a, b), c = R.choice(list(MIX.items()))
    if R.random() < 0.5:
        a, b = b, a
    return [
        (
            R.choice(
                [
                    f"What do you get when you mix {a} and {b}?",
                    f"What colour do {a} and {b} make?",
                    f"Mix {a} and {b}. What colour is it?",
                ]
            ),
            f"{Cap(a)} and {b} make {c}.",
        )
    ]


def an(w):
    return ("an " if w[0] in "aeiou" else "a ") + w


def d_animal(R):
    k = R.choice(list(ANIM))
    s, b, h, l, cl, e = ANIM[k]
    r = R.randrange(6)
    if r == 0:
        if s == "no sound":
            return [(f"What sound does {an(k)} make?", f"{Cap(an(k))} makes almost no sound.")]
        return [
            (
                R.choice(
                    [f"What sound does {an(k)} make?", f"What does {an(k)} say?", f"Which sound does {an(k)} make?"]
                ),
                f'{Cap(an(k))} makes the sound "{s}".',
            )
        ]
    if r == 1:
        return [
            (
                R.choice(
                    [
                        f"What is a baby {k} called?",
                        f"What do you call a baby {k}?",
                        f"What is the name for a young {k}?",
                    ]
                ),
                f"A baby {k} is called {an(b)}.",
            )
        ]
    if r == 2:
        return [
            (
                R.choice([f"Where does {an(k)} live?", f"What is the home of {an(k)}?"]),
                f"{Cap(an(k))} can live in {'an' if h[0] in 'aeiou' else 'a'} {h}."
                if h not in ("savanna", "grassland", "ocean", "jungle", "forest")
                else f"{Cap(an(k))} can live in the {h}.",
            )
        ]
    if r == 3:
        return [
            (
                R.choice([f"How many legs does {an(k)} have?", f"How many legs has {an(k)} got?"]),
                f"{Cap(an(k))} has {numw(l) if l else 'no'} legs.",
            )
        ]
    if r == 4:
        return [
            (
                R.choice([f"What kind of animal is {an(k)}?", f"What type of animal is {an(k)}?"]),
                f"{Cap(an(k))} is {an(cl)}.",
            )
        ]
    return [
        (
            R.choice([f"What does {an(k)} eat?", f"What do you feed {an(k)}?", f"What is the food of {an(k)}?"]),
            f"{Cap(an(k))} eats {e}.",
        )
    ]


def d_cat(R):
    k = R.choice(list(CATS))
    w = R.choice(CATS[k])
    pl = PLURAL[k]
    r = R.random()
    if r < 0.3:
        n = R.randint(2, min(5, len(CATS[k])))
        i0 = R.randrange(len(CATS[k]))
        xs = [CATS[k][(i0 + j) % len(CATS[k])] for j in range(n)]
        q = R.choice(
            [
                "Name {n} {p}.",
                "List {n} {p}.",
                "Give me {n} {p}.",
                "Tell me {n} {p}.",
                "Can you name {n} {p}?",
                "Please list {n} {p}.",
            ]
        ).format(n=numw(n) if R.random() < 0.7 else n, p=pl)
        st = R.random()
        if st < 0.5:
            return [(q, Cap(", ".join(xs[:-1]) + " and " + xs[-1] + "."))]
        if st < 0.75:
            return [(q, "\n".join(f"{i+1}. {Cap(x)}" for i, x in enumerate(xs)))]
        if st < 0.85:
            return [
                (
                    q + R.choice([" Use a numbered list.", " Make a numbered list."]),
                    "\n".join(f"{i+1}. {Cap(x)}" for i, x in enumerate(xs)),
                )
            ]
        return [(q + R.choice([" Use bullet points.", " Make a bullet list."]), "\n".join(f"- {Cap(x)}" for x in xs))]
    if r < 0.6:
        k2 = R.choice([x for x in CATS if x != k])
        yes = R.random() < 0.5
        kk = k if yes else k2
        if not yes and w in CATS[k2]:
            kk = k
            yes = True
        if w[0].isupper() or k in ("season", "ocean"):
            q = f"Is {w} {an(kk)}?"
            S1 = Cap(w)
        elif k in ("drink", "metal", "sport", "colour"):
            q = f"Is {w} {an(kk)}?"
            S1 = Cap(w)
        else:
            q = f"Is {an(w)} {an(kk)}?"
            S1 = Cap(an(w))
        low = S1 if w[0].isupper() else S1[0].lower() + S1[1:]
        return [(q, f"Yes, {low} is {an(kk)}." if yes else f"No, {low} is not {an(kk)}. {('It' )} is {an(k)}.")]
    if r < 0.8:
        ks = R.sample(list(CATS), 1)[0]
        k2 = R.choice([x for x in CATS if x != ks])
        a = R.sample(CATS[ks], 3)
        o = R.choice(CATS[k2])
        if o in CATS[ks]:
            return d_cat(R)
        xs = a + [o]
        R.shuffle(xs)
        return [
            (
                R.choice(
                    ["Which one does not belong: {l}?", "Find the odd one out: {l}.", "Which word does not fit: {l}?"]
                ).format(l=", ".join(xs)),
                f"{Cap(o)} does not belong. The others are {PLURAL[ks]}.",
            )
        ]
    if w[0].isupper() or k in ("drink", "metal", "sport", "colour", "season", "ocean"):
        s = Cap(w)
    else:
        s = Cap(an(w))
    low = s if w[0].isupper() else s[0].lower() + s[1:]
    return [(R.choice([f"What is {low}?", f"What kind of thing is {low}?"]), f"{s} is {an(k)}.")]


def d_size(R):
    i, j = R.sample(range(len(SIZES)), 2)
    a, b = SIZES[i], SIZES[j]
    big = SIZES[max(i, j)]
    sm = SIZES[min(i, j)]
    if R.random() < 0.5:
        return [
            (
                R.choice([f"Which is bigger, {an(a)} or {an(b)}?", f"What is larger: {an(a)} or {an(b)}?"]),
                f"{Cap(an(big))} is bigger than {an(sm)}.",
            )
        ]
    return [(R.choice([f"Which is smaller, {an(a)} or {an(b)}?"]), f"{Cap(an(sm))} is smaller than {an(big)}.")]


def d_qa(R):
    qs, a = R.choice(QA)
    q = R.choice(qs)
    if a.startswith("William"):
        p = "Hamlet" if "Hamlet" in q else "Romeo and Juliet"
        a = f"William Shakespeare wrote {p}."
    if R.random() < 0.25:
        q = (
            R.choice(
                [
                    "Can you tell me: ",
                    "Please tell me: ",
                    "Question: ",
                    "Hi! ",
                    "Hello. ",
                    "I have a question. ",
                    "Tell me, ",
                ]
            )
            + q
        )
    if R.random() < 0.08:
        q = q.lower().rstrip("?.!")
    return [(q, a)]


def d_yesno(R):
    q, a = R.choice(YESNO)
    return [(q, a)]


def d_joke(R):
    t = [
        (
            R.choice(
                [
                    "Tell me a joke.",
                    "Do you know a joke?",
                    "Make me laugh.",
                    "Say something funny.",
                    "Can you tell me a joke?",
                    "I want to hear a joke.",
                ]
            ),
            R.choice(JOKES),
        )
    ]
    if R.random() < 0.25:
        t.append(
            (
                R.choice(["Another one, please.", "One more!", "Tell me another joke."]),
                R.choice([j for j in JOKES if j != t[0][1]]),
            )
        )
    return t


def d_riddle(R):
    q, a = R.choice(RIDDLES)
    r = R.random()
    if r < 0.5:
        return [
            (R.choice(["Tell me a riddle.", "Do you know a riddle?", "Give me a riddle."]), q),
            (R.choice(["I do not know.", "I give up.", "What is the answer?"]), f"The answer is {a}."),
        ]
    if r < 0.75:
        return [
            (R.choice(["Tell me a riddle.", "Give me a riddle."]), q),
            (
                R.choice([f"Is it {a}?", f"It is {a}.", f"{Cap(a)}!"]),
                R.choice([f"Yes, it is {a}! Well done.", f"Correct! The answer is {a}."]),
            ),
        ]
    return [(q, f"The answer is {a}.")]


def d_qa_pick(R, keys):
    c = [x for x in QA if any(k in x[0] for k in keys)]
    qs, a = R.choice(c)
    return [(R.choice(qs), a)]


DEFS = []


def d_def(R):
    if not DEFS:
        return d_qa(R)
    w, d = R.choice(DEFS)
    return [
        (
            R.choice(
                [
                    f'What is the meaning of "{w}"?',
                    f'Define "{w}".',
                    f'What does "{w}" mean?',
                    f"Give me a definition of {w}.",
                    f'Explain the word "{w}".',
                ]
            ),
            f"{Cap(w)}: {d}.",
        )
    ]
