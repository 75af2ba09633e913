"""Dialogues about numbers, days and months."""

from story_words import NAMES

NUMW = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()


def numw(n):
    if n <= 20:
        return NUMW[n]
    t = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
    if n < 100:
        return t[n // 10] + ("-" + NUMW[n % 10] if n % 10 else "")
    if n < 1000:
        return NUMW[n // 100] + " hundred" + (" and " + numw(n % 100) if n % 100 else "")
    return str(n)


DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()

MONTHS = "January February March April May June July August September October November December".split()

ORD = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()

MDAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

HOLD = False


def held_arith(a, b, op):
    return HOLD and (a * 31 + b * 17 + ord(op) * 7) % 23 == 0


def arith(R):
    while True:
        op = R.choice("++--*")
        if op == "+":
            a, b = R.randint(0, 20), R.randint(0, 20)
            r = a + b
        elif op == "-":
            a = R.randint(0, 20)
            b = R.randint(0, a)
            r = a - b
        else:
            a, b = R.randint(0, 12), R.randint(0, 12)
            r = a * b
        if not held_arith(a, b, op):
            return a, b, op, r


OPW = {"+": ["plus", "and"], "-": ["minus"], "*": ["times", "multiplied by"]}


def q_arith(R, x=None):
    a, b, op, r = x or arith(R)
    if R.random() < 0.25 and r < 1000:
        w = OPW[op][0]
        q = R.choice(
            ["What is {a} {w} {b}?", "How much is {a} {w} {b}?", "{a} {w} {b}?", "Tell me {a} {w} {b}."]
        ).format(a=numw(a), w=w, b=numw(b))
        return q[0].upper() + q[1:], f"{numw(a).capitalize()} {w} {numw(b)} is {numw(r)}."
    s = {"+": "+", "-": "-", "*": R.choice(["*", "x"])}[op]
    f = R.choice(
        [
            "What is {a} {s} {b}?",
            "What's {a} {s} {b}?",
            "How much is {a} {s} {b}?",
            "{a} {s} {b}",
            "{a} {s} {b} =",
            "{a} {s} {b} = ?",
            "Calculate {a} {s} {b}.",
            "Compute {a} {s} {b}.",
            "Please add up: {a} {s} {b}" if op == "+" else "Please work out {a} {s} {b}.",
            "Can you calculate {a} {s} {b}?",
            "What is {a} {w} {b}?",
            "How much is {a} {w} {b}?",
            "Tell me what {a} {w} {b} is.",
            "Solve {a} {s} {b}.",
            "What do you get for {a} {s} {b}?",
            "Work out {a} {s} {b} for me.",
            "Give me the answer to {a} {s} {b}.",
            "I want to know {a} {s} {b}.",
            "Please do this sum: {a} {s} {b}",
            "My sum is {a} {s} {b}. What is the answer?",
            "{a} {s} {b} makes what?",
            "The answer to {a} {s} {b} is?",
            "If I compute {a} {s} {b}, what do I get?",
            "Do you know {a} {s} {b}?",
            "How many is {a} {s} {b}?",
        ]
    )
    return f.format(a=a, b=b, s=s, w=OPW[op][0]), f"{a} {s if s!='x' else 'x'} {b} = {r}"


def d_arith(R):
    t = [q_arith(R)]
    while R.random() < 0.4 and len(t) < 6:
        x = arith(R)
        s = x[2]
        t.append(
            (
                R.choice(["And {a} {s} {b}?", "What about {a} {s} {b}?", "Now {a} {s} {b}.", "{a} {s} {b}?"]).format(
                    a=x[0], s=s, b=x[1]
                ),
                f"{x[0]} {s} {x[1]} = {x[3]}",
            )
        )
    return t


def d_wordprob(R):
    n = R.choice(NAMES)
    o = R.choice("apples pears books coins shells stones cards balls pencils eggs stamps buttons".split())
    if R.random() < 0.5:
        while True:
            a, b = R.randint(1, 15), R.randint(1, 10)
            if not held_arith(a, b, "+"):
                break
        m = R.choice([x for x in NAMES if x != n])
        q = R.choice(
            [
                f"{n} has {a} {o}. {m} gives {n} {b} more. How many {o} does {n} have now?",
                f"{n} has {a} {o} and finds {b} more. How many {o} does {n} have?",
                f"There are {a} {o} in a box. {n} puts in {b} more. How many {o} are in the box?",
            ]
        )
        return [(q, f"{a} + {b} = {a+b}, so the answer is {a+b} {o if a+b!=1 else o[:-1]}.")]
    while True:
        a = R.randint(2, 20)
        b = R.randint(1, a - 1)
        if not held_arith(a, b, "-"):
            break
    q = R.choice(
        [
            f"{n} has {a} {o} and loses {b}. How many {o} are left?",
            f"{n} has {a} {o} and gives away {b}. How many {o} does {n} have now?",
            f"There are {a} {o} on the table. {n} takes {b}. How many {o} are left?",
        ]
    )
    return [(q, f"{a} - {b} = {a-b}, so the answer is {a-b} {o if a-b!=1 else o[:-1]}.")]


def d_compare(R):
    a, b = R.sample(range(0, 101), 2)
    if R.random() < 0.5:
        return [
            (
                R.choice(
                    [
                        "Which is bigger, {a} or {b}?",
                        "Which number is larger, {a} or {b}?",
                        "What is greater: {a} or {b}?",
                    ]
                ).format(a=a, b=b),
                f"{max(a,b)} is bigger than {min(a,b)}.",
            )
        ]
    return [
        (
            R.choice(["Which is smaller, {a} or {b}?", "Which number is less, {a} or {b}?"]).format(a=a, b=b),
            f"{min(a,b)} is smaller than {max(a,b)}.",
        )
    ]


def d_evenodd(R):
    a = R.randint(0, 100)
    if R.random() < 0.5:
        return [
            (
                R.choice([f"Is {a} even or odd?", f"Is the number {a} odd or even?"]),
                f"{a} is {'odd' if a%2 else 'even'}.",
            )
        ]
    k = R.choice(["even", "odd"])
    ok = (a % 2 == 1) == (k == "odd")
    return [(f"Is {a} an {k} number?", f"{'Yes' if ok else 'No'}, {a} is {'odd' if a%2 else 'even'}.")]


def d_count(R):
    r = R.random()
    if r < 0.4:
        a = R.randint(0, 15)
        b = a + R.randint(2, 12)
        if R.random() < 0.4:
            a = 1
            b = R.randint(3, 20)
        seq = list(range(a, b + 1))
        q = R.choice(
            [
                "Count from {a} to {b}.",
                "Please count from {a} to {b}.",
                "Can you count from {a} to {b}?",
                "List the numbers from {a} to {b}.",
            ]
        ).format(a=a, b=b)
    elif r < 0.6:
        b = R.randint(3, 20)
        a = max(0, b - R.randint(2, 10))
        seq = list(range(b, a - 1, -1))
        q = R.choice(
            ["Count down from {b} to {a}.", "Count backwards from {b} to {a}.", "Please count down from {b} to {a}."]
        ).format(a=a, b=b)
    elif r < 0.8:
        k = R.choice([2, 3, 5, 10])
        n = R.randint(4, 8)
        seq = [k * i for i in range(1, n + 1)]
        q = R.choice(
            [
                f"Count by {k}s up to {k*n}.",
                f"Count in steps of {k} up to {k*n}.",
                f"List the first {numw(n)} multiples of {k}.",
            ]
        )
    else:
        a = R.randint(0, 100)
        if R.random() < 0.5:
            return [
                (
                    R.choice(
                        [
                            f"What number comes after {a}?",
                            f"Which number comes after {a}?",
                            f"What is the next number after {a}?",
                        ]
                    ),
                    f"The number after {a} is {a+1}.",
                )
            ]
        return [
            (
                R.choice([f"What number comes before {a+1}?", f"Which number comes before {a+1}?"]),
                f"The number before {a+1} is {a}.",
            )
        ]
    return [(q, ", ".join(map(str, seq)))]


def d_days(R):
    r = R.random()
    if r < 0.35:
        i = R.randrange(7)
        if R.random() < 0.5:
            return [
                (
                    R.choice(
                        [
                            "What day comes after {d}?",
                            "Which day comes after {d}?",
                            "What is the day after {d}?",
                            "If today is {d}, what day is tomorrow?",
                            "Today is {d}. What day is tomorrow?",
                        ]
                    ).format(d=DAYS[i]),
                    R.choice(["{e} comes after {d}."]).format(d=DAYS[i], e=DAYS[(i + 1) % 7]),
                )
            ]
        return [
            (
                R.choice(
                    [
                        "What day comes before {d}?",
                        "Which day comes before {d}?",
                        "If today is {d}, what day was yesterday?",
                        "Today is {d}. What day was yesterday?",
                    ]
                ).format(d=DAYS[i]),
                f"{DAYS[i-1]} comes before {DAYS[i]}.",
            )
        ]
    if r < 0.7:
        i = R.randrange(12)
        if R.random() < 0.5:
            return [
                (
                    R.choice(
                        [
                            "What month comes after {d}?",
                            "Which month comes after {d}?",
                            "What is the month after {d}?",
                        ]
                    ).format(d=MONTHS[i]),
                    f"{MONTHS[(i+1)%12]} comes after {MONTHS[i]}.",
                )
            ]
        return [
            (
                R.choice(["What month comes before {d}?", "Which month comes before {d}?"]).format(d=MONTHS[i]),
                f"{MONTHS[i-1]} comes before {MONTHS[i]}.",
            )
        ]
    if r < 0.8:
        i = R.randrange(12)
        if i == 1:
            return [(f"How many days does {MONTHS[i]} have?", "February has 28 days, or 29 days in a leap year.")]
        return [
            (
                R.choice([f"How many days does {MONTHS[i]} have?", f"How many days are in {MONTHS[i]}?"]),
                f"{MONTHS[i]} has {MDAYS[i]} days.",
            )
        ]
    if r < 0.9:
        i = R.randrange(12)
        return [
            (
                R.choice(
                    [
                        f"What is the {ORD[i]} month of the year?",
                        f"Which month is the {ORD[i]} month?",
                        f"Name the {ORD[i]} month.",
                    ]
                ),
                f"The {ORD[i]} month is {MONTHS[i]}.",
            )
        ]
    if R.random() < 0.5:
        return [
            (
                R.choice(
                    ["List the days of the week.", "What are the days of the week?", "Name all the days of the week."]
                ),
                "The days of the week are Monday, Tuesday, Wednesday, Thursday, Friday, Saturday and Sunday.",
            )
        ]
    return [
        (
            R.choice(["List the months of the year.", "What are the months of the year?", "Name all the months."]),
            "The months are January, February, March, April, May, June, July, August, September, October, November and December.",
        )
    ]
