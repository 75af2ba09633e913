"""Who and what a story is about: three characters, their home, an object, a place, as the context of its templates.

The order of the draws from the generator R is part of a seed's output: do not change it.
"""
from gram import expand
from story_words import (
    ANAMES,
    ANIMALS,
    BOYS,
    CITY_PLACES,
    COLOURS,
    DAYS,
    FOOD,
    GIRLS,
    NUMBERS,
    OBJ,
    TIME,
    TRAIT,
    WEATHER,
    WEATHER_ADJECTIVES,
    WILD_PLACES,
)

ANIMAL_HOMES = [
    "a small den under the roots",
    "a cosy burrow",
    "a warm nest of leaves",
    "a little house made of twigs",
    "a hollow log",
]
HOMES = [
    "a small white house",
    "a flat above the bakery",
    "a farm near the river",
    "a little house with a red door",
    "a tall house on the hill",
]
ANIMAL_ELDERS = ["old Owl", "Grandmother Badger", "Father Bear", "wise old Turtle", "Mother Deer"]
ELDERS = ["{a_his} mother", "{a_his} father", "{a_his} grandmother", "{a_his} grandfather", "{a_his} aunt"]


def person(R, used, kind=None, name=None):
    """A character whose name is not in `used`; kind: girl, boy or one of ANIMALS."""
    kind = kind or R.choice(["girl", "boy"])
    animal = kind not in ("girl", "boy")
    pool = ANAMES if animal else GIRLS if kind == "girl" else BOYS
    name = name or R.choice([other for other in pool if other not in used])
    female = R.random() < 0.5 if animal else kind == "girl"
    used.add(name)
    return dict(
        name=name,
        kind=kind,
        he="she" if female else "he",
        him="her" if female else "him",
        his="her" if female else "his",
        self="herself" if female else "himself",
        animal=animal,
        move=ANIMALS[kind][1] if animal else "run",
        feat=ANIMALS[kind][0] if animal else "",
        trait=R.choice(TRAIT),
    )


def put(ctx, key, character):
    ctx[key] = character["name"]
    for part in ("kind", "he", "him", "his", "self", "trait", "move", "feat"):
        ctx[f"{key}_{part}"] = character[part]


def set_objects(ctx, first, second):
    ctx.update(obj=first, onoun=first.split()[-1], obj2=second, o2noun=second.split()[-1])


def world(R, kind=None, obj=None, place=None, name=None):
    """A new context; what is given is taken, the rest drawn. finish_context() is to follow."""
    used = set()
    ctx = {}
    animal = (kind in ANIMALS) if kind else R.random() < 0.45
    a = person(R, used, kind or (R.choice(list(ANIMALS)) if animal else None), name)
    animal = a["animal"]

    def other():
        if animal:
            return person(R, used, R.choice([k for k in ANIMALS if k != a["kind"]]))
        R.random()  # not used; the released text was made with this draw
        return person(R, used)

    put(ctx, "a", a)
    put(ctx, "b", other())
    put(ctx, "c", other())
    obj = obj or R.choice(OBJ)
    set_objects(ctx, obj, R.choice([x for x in OBJ if x != obj]))
    ctx.update(food=R.choice(FOOD), weather=R.choice(WEATHER), time=R.choice(TIME))
    places = WILD_PLACES if animal or R.random() < 0.3 else CITY_PLACES
    ctx["place"] = place or R.choice(places)
    ctx["place2"] = R.choice([x for x in places if x != ctx["place"]])
    ctx.update(day=R.choice(DAYS), num=R.choice(NUMBERS), color=R.choice(COLOURS))
    ctx["home"] = R.choice(ANIMAL_HOMES if animal else HOMES)
    ctx["elder"] = R.choice(ANIMAL_ELDERS if animal else ELDERS)
    if not animal:
        ctx["elder"] = expand(ctx["elder"], ctx, R, cap=False)
    ctx["b_intro"] = "a {b_kind} named {b}" if animal else "{b}"
    ctx["c_intro"] = "a {c_kind} named {c}" if animal else "{c}"
    ctx["animal"] = animal
    return ctx


def next_episode(ctx, R):
    """The same characters on another day: draws all that may differ. finish_context() is to follow."""
    places = WILD_PLACES if ctx["animal"] else CITY_PLACES
    obj = R.choice(OBJ)
    ctx.update(
        food=R.choice(FOOD),
        weather=R.choice(WEATHER),
        time=R.choice(TIME),
        day=R.choice(DAYS),
        num=R.choice(NUMBERS),
        color=R.choice(COLOURS),
    )
    set_objects(ctx, obj, R.choice([x for x in OBJ if x != obj]))
    ctx["place"], ctx["place2"] = R.sample(places, 2)


def finish_context(ctx, R):
    """What follows from the rest: capitals, possessives, introductions."""
    for key in "abc":
        ctx[key + "_He"] = ctx[key + "_he"].capitalize()
        ctx[key + "_His"] = ctx[key + "_his"].capitalize()
        ctx[key + "_poss"] = ctx[key] + ("'" if ctx[key].endswith("s") else "'s")
    elder = ctx["elder"]
    ctx["elder_cap"] = elder[0].upper() + elder[1:]
    ctx["elder_t"] = " ".join(w.capitalize() for w in elder.replace("his ", "").replace("her ", "").split())
    ctx["weather_adj"] = WEATHER_ADJECTIVES[ctx["weather"]]
    if not ctx["animal"]:
        ctx["b_intro"] = R.choice(["a {b_kind} named {b}", "a {b_kind} called {b}"])
        ctx["c_intro"] = "{c}"
