"""The plots: each gives the sentences of a story and questions about it, as templates of gram.expand."""

PLOTS = {}


def plot(title):
    """Registers a function of the random generator by its name; the order of registration is part of a seed's output."""

    def register(function):
        PLOTS[function.__name__] = (title, function)
        return function

    return register


@plot("The Lost {obj}")
def lost(R):
    return (
        [
            "{a} had a {obj}. [It was {a_his} favourite thing.|{a_He} took it everywhere.|It was a gift from {elder}.]",
            "{day_}{a} [took the {onoun} to {place}|went to {place} with the {onoun}|was playing near {place}]. [After a while|Soon|Then] {a_he} [looked down|looked in {a_his} bag|turned around] and the {onoun} was gone!",
            '"[Oh no|Oh dear]! Where is my {onoun}?" {a} [cried|said|asked].',
            "{a} [looked|searched] [under a bench|behind a rock|in the tall grass|under the leaves], but it was not there. {a_He} [felt sad|began to cry|did not know what to do].",
            'Then {b} came by. "[What is wrong|Why are you sad|What happened], {a}?" asked {b}.',
            '"I lost my {obj}," said {a}. "[Do not worry|Do not cry|Cheer up]," said {b}. "[I will help you look|We will look together|Let us find it together]."',
            'They looked [near the water|by the gate|along the path|everywhere]. [At last|After a long time|Finally], {b} [pointed to a bush|looked inside a hollow log|looked behind a big stone]. "[Look|Here it is|I see it]!" {b_he} shouted.',
            'The {obj} was there! {a} [hugged|thanked] {b}. "Thank you [so much|very much], {b}. You are a [good|true|kind] friend."',
        ],
        [
            ("What did {a} lose?", "{a} lost a {obj}.", "{obj}"),
            ("Who helped {a} find the {onoun}?", "{b} helped {a}.", "{b}"),
            ("Where did {a} lose the {onoun}?", "{a} lost the {onoun} at {place}.", "{place}"),
        ],
    )


@plot("{a} Shares a Treat")
def share(R):
    return (
        [
            "{day_}{elder} gave {a} a {food}. It [smelled wonderful|looked very good|was still warm].",
            "{a} [wanted to eat it all|was very hungry|sat down near {place} to eat it].",
            '[Just then|At that moment], {b} came along. {b} [looked tired|looked hungry|had walked a long way]. "[I have had nothing to eat today|I am so hungry|I forgot my lunch]," said {b}.',
            "{a} looked at the {food}. [It was not very big.|{a_He} thought for a moment.|{a_He} was hungry too.]",
            'Then {a} [broke it in two|cut it in half|made two parts] and gave one part to {b}. "[Here you are|This is for you|Please eat with me]," {a_he} said.',
            '"[Thank you|You are very kind|How nice of you]!" said {b}. They [sat in the sun|sat side by side|sat under a tree] and ate together.',
            '[The next day|A week later|Later that day], {b} came back with a {obj}. "This is for you," said {b}, "because you [shared with me|were kind to me|helped me when I was hungry]."',
        ],
        [
            ("What did {elder} give {a}?", "{elder_cap} gave {a} a {food}.", "{food}"),
            ("What did {b} give {a} later?", "{b} gave {a} a {obj}.", "{obj}"),
            ("Who did {a} share with?", "{a} shared with {b}.", "{b}"),
        ],
    )


@plot("The Storm")
def storm(R):
    return (
        [
            "{day_}{a} and {b} were [playing|walking|picking flowers] near {place}.",
            "[Suddenly|All at once], the sky turned [dark|grey|black]. [The wind began to howl.|Thunder rolled over the hills.|Big drops of rain began to fall.]",
            '"[We must find a dry place|We have to hide|Let us run]!" said {a}.',
            "They [ran|hurried] to {place2}. [It was dry there.|There was just enough room for two.|The rain could not reach them.]",
            '{b} was [afraid of the thunder|shaking|cold and scared]. {a} [held {b_his} hand|sat close to {b_him}|told {b_him} a funny story]. "[The storm will pass|I am here with you|It is only noise]," {a_he} said.',
            "[After an hour|After some time|By and by], the rain stopped. The sun came out and there was a [bright|huge|beautiful] rainbow.",
            '"[Look|See]! [It has every colour|It goes all the way to {place}|I can see red and green and blue]!" said {b}. {b_He} was not afraid any more.',
        ],
        [
            ("Where did {a} and {b} hide from the storm?", "They hid at {place2}.", "{place2}"),
            ("Who was afraid?", "{b} was afraid.", "{b}"),
            ("What did they see after the rain?", "They saw a rainbow.", "rainbow"),
        ],
    )


@plot("{a} Makes a Friend")
def newfriend(R):
    return (
        [
            "{a} [was new in town|had just moved here|did not know anyone]. {a_He} felt [lonely|a little sad|shy].",
            "{day_}{a} went to {place}. {a_He} saw {b_intro} [playing with a {obj}|sitting alone|trying to fix a {obj}].",
            "{a} wanted to say hello, but {a_he} was [shy|nervous|afraid]. {a_He} took a deep breath.",
            '"[Hello|Hi], my name is {a}," {a_he} said [softly|quietly|with a small smile]. "[May I play with you|Can I help you|What is that]?"',
            '{b} [looked up|smiled|jumped up]. "[Of course|Yes, please|Hello, {a}]! I am {b}. [This is my {obj}.|You can play with my {onoun}.|We can use my {obj} together.]"',
            "They played [all {time}|until it got dark|for a long time]. [They laughed a lot.|They told each other jokes.|They ran and jumped.]",
            '"[Will you come back tomorrow|Shall we meet again tomorrow]?" asked {b}. "[Yes|I would love to|Of course]!" said {a}.',
        ],
        [
            ("Where did {a} meet {b}?", "{a} met {b} at {place}.", "{place}"),
            ("What did {b} have?", "{b} had a {obj}.", "{obj}"),
            ("Who did {a} meet?", "{a} met {b}.", "{b}"),
        ],
    )


@plot("The {obj} in the Shop")
def saving(R):
    return (
        [
            "{day_}{a} saw a {obj} in a shop. [It was beautiful.|{a_He} had never seen one like it.|{a_He} wanted it very much.] It cost {num} coins.",
            '"I do not have {num} coins," {a} said. "[I will work for them|I can save up|I will earn them]."',
            "So {a} helped {elder} [carry wood|wash the plates|sweep the floor|pick apples]. {elder_cap} gave {a_him} one coin.",
            "Then {a} helped {b} [paint a fence|water the flowers|find {b_his} {obj2}|carry a heavy basket]. {b} gave {a_him} [a coin|another coin] too.",
            "{a} worked [every day|for many days|all week]. [At last|Finally|Before long], {a_he} had {num} coins.",
            "{a_He} [ran|hurried|went] to the shop. The {obj} was still there! {a} [put the coins on the table|counted the coins|paid for it] and took it home.",
            '"[You worked hard for it|I am proud of you|Well done]," said {elder}.',
        ],
        [
            ("How much did the {onoun} cost?", "It cost {num} coins.", "{num}"),
            ("What did {a} want to buy?", "{a} wanted to buy a {obj}.", "{obj}"),
        ],
    )


@plot("The Race")
def race(R):
    return (
        [
            "{day_}there was a race [at|near] {place}. {a}, {b} and {c} all wanted to win.",
            '"I am the fastest," said {b}. "[Nobody can beat me|I will win easily|You will see]." {a} [said nothing|only smiled|was not so sure].',
            '"[One, two, three|Ready, steady], go!" called {elder}. They began to run. {b} was [first|far ahead], {a} was second and {c} was last.',
            '[Halfway|Near the end], {c} [fell|tripped over a root|hurt {c_his} foot]. "[Ouch|Ow]!" cried {c}.',
            '{b} [did not stop|kept running|did not look back]. But {a} [stopped|turned around|ran back]. "Are you all right, {c}?" {a_he} asked.',
            "{a} helped {c} up, and they [walked|went] to the end together. {b} won the race.",
            'But [everyone clapped for {a}|{elder} gave {a} the {obj}|the others cheered for {a}]. "[You won something better|Helping is better than winning|You have a good heart]," said {elder}.',
        ],
        [
            ("Who won the race?", "{b} won the race.", "{b}"),
            ("Who fell?", "{c} fell.", "{c}"),
            ("Who helped {c}?", "{a} helped {c}.", "{a}"),
        ],
    )


@plot("The Broken {obj2}")
def broke(R):
    return (
        [
            "{day_}{a} was playing with {b_poss} {obj2}. [{b} had lent it to {a_him}.|{b} was very proud of it.]",
            "{a} was not careful. The {o2noun} [fell on the floor|slipped from {a_his} hands|hit a stone] and broke.",
            '{a} felt [terrible|awful|sick with worry]. "[What should I do|What will {b} say]?" {a_he} thought. [{a_He} wanted to hide it.|{a_He} wanted to run away.|For a moment {a_he} thought about telling a lie.]',
            'But {a} went to {b} and told the truth. "[I am so sorry|I am very sorry], {b}. I broke your {obj2}."',
            '{b} was [sad|upset|quiet] for a moment. Then {b_he} said, "[Thank you for telling me|I am glad you told me the truth|It was an accident]. [We can fix it|Let us mend it together|Maybe we can repair it]."',
            "They [found some glue|got some string|asked {elder} for help] and worked [together|all {time}]. [Soon|In the end], the {o2noun} was [as good as new|whole again|almost like before].",
            "{a} was glad that {a_he} had told the truth.",
        ],
        [
            ("What did {a} break?", "{a} broke a {obj2}.", "{obj2}"),
            ("Who owned the {o2noun}?", "{b} owned the {o2noun}.", "{b}"),
            ("Did {a} tell the truth?", "Yes, {a} told the truth.", "Yes"),
        ],
    )


@plot("{a} and the Seed")
def seed(R):
    return (
        [
            '{elder_cap} gave {a} a [tiny|small|round] seed. "Plant it and [wait|be patient|take care of it]," {elder} said.',
            "{a} [dug a hole|made a small hole] near {place} and put the seed in it. {a_He} gave it water.",
            "[The next day|In the morning], {a} looked. Nothing had grown. {a_He} looked the day after that. Still nothing!",
            '"[It does not work|Maybe the seed is bad|I want it to grow now]," said {a}. "[Give it time|Wait a little more|Good things take time]," said {b}.',
            "So {a} waited. {a_He} gave it water every day. After {num} days, a [small|tiny] green leaf came up!",
            "The plant grew and grew. [In the summer|Soon], it had a big {color} flower. [Bees came to visit it.|It smelled sweet.|Everyone came to see it.]",
            '"[I am glad I waited|It was worth the wait]!" said {a}.',
        ],
        [
            ("What colour was the flower?", "The flower was {color}.", "{color}"),
            ("Who gave {a} the seed?", "{elder_cap} gave {a} the seed.", "{elder}"),
            ("After how many days did a leaf come up?", "A leaf came up after {num} days.", "{num}"),
        ],
    )


@plot("Lost in the Fog")
def fog(R):
    return (
        [
            "{day_}{a} went to {place} to [pick berries|look for shells|gather wood|find mushrooms]. [{elder_cap} told {a_him} to be home before dark.|{a_He} went alone.]",
            'A thick fog came down. {a} could not see [the path|the way home|anything]. "[Which way is home|Where am I]?" {a_he} said. {a_He} was [scared|worried|cold].',
            "{a} sat down and [tried to be brave|listened|thought hard]. Then {a_he} heard a sound. It was a [bell|song|whistle].",
            '"[Hello|Who is there]?" {a} called. "It is me, {b}!" said a voice. "[Follow my voice|Walk to me slowly|I know the way]!"',
            '{a} walked [slowly|step by step|carefully] and there was {b} with a {obj2}. "[I was looking for you|{elder_cap} sent me to find you|I knew you were here]," {b_he} said.',
            "They [held hands|stayed close] and walked home. {elder_cap} [was waiting at the door|had made hot soup|gave them a big hug].",
        ],
        [
            ("Who found {a}?", "{b} found {a}.", "{b}"),
            ("Where did {a} go?", "{a} went to {place}.", "{place}"),
            ("What did {b} have?", "{b} had a {obj2}.", "{obj2}"),
        ],
    )


@plot("The Birthday Surprise")
def birthday(R):
    return (
        [
            "It was {b_poss} birthday on {day}. {a} wanted to [make a surprise|give {b_him} a present|have a party for {b_him}].",
            '{a} asked {c} to help. "[You bring the {food}|You can make the {food}|Please bake a {food}]," said {a}, "and I will [wrap|bring] the {obj}."',
            "They [hung paper flowers|put lights|made a big sign] at {place}. [They had to be very quiet.|It took all {time}.|{c} told jokes while they worked.]",
            'When {b} came, {b_he} saw nobody. "[Did everyone forget my birthday|Where is everybody]?" {b_he} said sadly.',
            '"Surprise!" shouted {a} and {c}. They [jumped out|came out from behind a tree|ran to hug {b_him}]. {b} was so [surprised|happy] that {b_he} [laughed|almost cried|danced].',
            '{b} opened the present. It was a {obj}! "[I love it|It is just what I wanted|Thank you, my friends]," {b_he} said. Then they ate the {food} and [sang songs|played games|danced].',
        ],
        [
            ("Whose birthday was it?", "It was {b_poss} birthday.", "{b}"),
            ("What present did {b} get?", "{b} got a {obj}.", "{obj}"),
            ("What did they eat?", "They ate a {food}.", "{food}"),
        ],
    )


@plot("{a} Learns Something New")
def learn(R):
    sk = R.choice(
        [
            ("swim", "the water", "float"),
            ("ride a bicycle", "the bicycle", "keep still"),
            ("whistle", "the tune", "blow"),
            ("climb", "the tall tree", "hold on"),
            ("skate", "the ice", "glide"),
            ("read", "the long words", "sound them out"),
            ("paint", "the brush", "mix the colours"),
            ("dance", "the steps", "count to four"),
        ]
    )
    return (
        [
            "{a} wanted to learn to SK0. All {a_his} friends could do it, but {a} could not.".replace("SK0", sk[0]),
            '{day_}{a} tried near {place}. [It was hard.|It did not go well.|{a_He} failed the first time.] "[I will never learn|I cannot do it|It is too hard]!" {a_he} said.',
            '{b} saw this. "[I could not do it at first either|Everyone fails at first|Let me show you]," {b_he} said. "[First, relax|Try again|Go slowly]. Then SK2."'.replace(
                "SK2", sk[2]
            ),
            "{a} tried again. And again. [On the third try|After {num} tries|Little by little], {a_he} got better.",
            '"[Look at me|I am doing it|I can do it]!" {a} shouted. {b} clapped {b_his} hands.',
            "Now {a} could SK0 as well as anyone. {a_He} [thanked {b}|practised every day|even taught {c}].".replace(
                "SK0", sk[0]
            ),
        ],
        [
            ("What did {a} learn?", "{a} learned to " + sk[0] + ".", sk[0]),
            ("Who helped {a}?", "{b} helped {a}.", "{b}"),
        ],
    )


@plot("The Strange Noise")
def noise(R):
    cause = R.choice(
        [
            ("a hungry kitten", "gave it some milk"),
            ("a loose window", "closed it"),
            ("a little bird with a hurt wing", "made it a soft bed"),
            ("an old clock", "wound it up"),
            ("a branch in the wind", "looked at the moon for a while"),
            ("a lost puppy", "took it to its home"),
        ]
    )
    return (
        [
            "[At night|One dark night|Late in the evening], {a} heard a strange noise. [Tap, tap, tap.|Scratch, scratch.|Creak, creak.|Squeak, squeak.]",
            '"[What is that|Who is there]?" {a} whispered. {a_He} [hid under the blanket|held {a_his} {obj} tight|lay very still].',
            'The noise came again. {a} woke {b}. "[Do you hear it|Listen]," said {a}. {b} [listened|nodded|opened one eye]. "[Let us look together|It may be nothing|We should go and see]," said {b}.',
            "They [took a lamp|held hands|walked on their toes] and went [outside|down the stairs|to the door]. [Their hearts beat fast.|It was very dark.]",
            "{a} looked carefully. It was only CAUSE! They both laughed.".replace("CAUSE", cause[0]),
            '{a} and {b} ACT. Then they went back to bed. ["Sometimes a scary thing is not scary when you look at it," said {a}.|{a} was not afraid of the dark any more.|Soon they were fast asleep.]'.replace(
                "ACT", cause[1]
            ),
        ],
        [
            ("What made the noise?", "The noise was made by " + cause[0] + ".", cause[0]),
            ("Who did {a} wake?", "{a} woke {b}.", "{b}"),
        ],
    )


@plot("The Bridge")
def bridge(R):
    return (
        [
            "{a} and {b} met on a narrow bridge near {place}. [There was room for only one.|The bridge was old and thin.]",
            '"[I was here first|Please let me pass|Go back]," said {a}. "[No, I was here first|I will not move|You go back]," said {b}.',
            "They [argued|shouted|stood there] for a long time. [The sun went higher.|The bridge shook a little.|Neither of them moved.]",
            'Then {c} came to the river. "[Why do you fight|What is the trouble]?" asked {c}. "If you fight, [you will both fall in the water|nobody will cross]."',
            '{a} thought about it. "You are right," {a_he} said. "[I will go back and let {b} cross|{b} can go first|I can wait]." {b} was surprised.',
            '{b} crossed the bridge and then [held {a_poss} hand so that {a_he} could cross|waited for {a}|helped {a} carry {a_his} {obj}]. "I am sorry that I was stubborn," said {b}.',
        ],
        [
            ("Where did {a} and {b} meet?", "They met on a bridge near {place}.", "bridge"),
            ("Who told them not to fight?", "{c} told them not to fight.", "{c}"),
            ("Who crossed first?", "{b} crossed first.", "{b}"),
        ],
    )


@plot("A Gift for {elder_t}")
def gift(R):
    return (
        [
            "{a} wanted to make a gift for {elder}. {a_He} had no money, so {a_he} decided to make something.",
            '"[What shall I make|What could it be]?" {a} asked {b}. "[Make a {obj}|How about a {obj}|I think a {obj} is best]," said {b}.',
            "They went to {place} to find [wood|paper and paint|string and shells|leaves and flowers]. {a} found {num} [good pieces|nice pieces].",
            "{a} worked hard. [First it was crooked.|The paint went on {a_his} nose.|Twice it fell apart.] But {a_he} did not give up.",
            "{b} painted it {color}. [It looked wonderful.|It was not perfect, but it was pretty.|They were both proud.]",
            'In the evening, {a} gave it to {elder}. "[Did you make this|For me|How lovely]?" {elder} said. "[It is the best gift of all|I will keep it forever|It is beautiful]."',
        ],
        [
            ("What did {a} make?", "{a} made a {obj}.", "{obj}"),
            ("What colour was the gift?", "It was {color}.", "{color}"),
            ("Who was the gift for?", "The gift was for {elder}.", "{elder}"),
        ],
    )


@plot("The Map")
def mapquest(R):
    return (
        [
            "{day_}{a} found an old map [in a box|under a stone|inside a book]. There was a {color} cross on it, near {place}.",
            '{a} showed it to {b} and {c}. "[It is a treasure map|We must follow it|Let us go and see]!" said {b}. {c} [brought a lamp|brought some rope|packed a {food}].',
            'They walked past {place2}, [over a hill|along a wall|through tall grass]. {c} was tired. "[Is it far|Are we there yet]?" {c_he} asked. "[Not far now|Only {num} more steps]," said {a}.',
            "At last they came to {place}. {a} dug in the ground. [Clunk!|There was something hard.] It was a [small|wooden|rusty] box.",
            'Inside was a {obj2} and a letter. The letter said: "[The real treasure is the friends who came with you|Share this with your friends|Well done, explorer]."',
            "{a}, {b} and {c} [laughed|looked at each other and smiled]. They [shared the {food}|took turns with the {o2noun}|put the map back for someone else].",
        ],
        [
            ("What was inside the box?", "A {obj2} and a letter were inside the box.", "{obj2}"),
            ("What colour was the cross on the map?", "The cross was {color}.", "{color}"),
            ("Who went with {a}?", "{b} and {c} went with {a}.", "{b} and {c}"),
        ],
    )


@plot("The Contest")
def contest(R):
    return (
        [
            "There was a [cooking|baking] contest at {place} on {day}. {a} decided to make a {food}.",
            '{b} also wanted to win. "[Mine will be the best|I have a secret recipe]," said {b}.',
            '{a} [mixed|stirred] and {a} [tasted|baked]. But {a_he} had no [sugar|salt|flour|butter]. "[What now?|Oh no!|What shall I do?]" {a_he} said.',
            '{b} had plenty. [{b} could keep it and win.|It would be easy for {b} to say nothing.] But {b_he} said, "[Take some of mine|Here, I have enough|Use mine]."',
            'The judge was {elder}. {elder_cap} tasted everything. [It was very quiet.|Everyone waited.] "The winner is {a}!"',
            '{a} [took the prize|held up the prize], a {obj}, and gave [it|half of the {food}] to {b}. "[Without you, I could not have done it|We won together|This is yours too]," said {a}.',
        ],
        [
            ("What did {a} make?", "{a} made a {food}.", "{food}"),
            ("Who won the contest?", "{a} won the contest.", "{a}"),
            ("What was the prize?", "The prize was a {obj}.", "{obj}"),
        ],
    )


@plot("{a} Cannot Sleep")
def sleep(R):
    return (
        [
            "{a} could not sleep. [The moon was too bright.|{a_He} was not tired at all.|{a_He} kept thinking about {place}.]",
            "{a} counted to {num}. {a_He} [turned left|sang a song|looked at the ceiling]. {a_He} was still awake.",
            '{elder_cap} came in. "[Why are you awake|Can you not sleep]?" "I am [too excited|not sleepy|thinking about tomorrow]," said {a}.',
            '"[Close your eyes|Let me tell you a story|Think of something nice]," said {elder}. "Think of {place}. Think of [the soft grass|the warm sun|the sound of water]."',
            "{a} closed {a_his} eyes. In {a_his} mind {a_he} saw {place}. {b} was there with a {obj}. They [flew over the trees|sailed across the sea|rode on a cloud].",
            "[Slowly|Little by little], {a_poss} breathing became slow. {elder_cap} [put out the light|smiled|closed the door]. {a} was asleep.",
        ],
        [
            ("What did {a} think of?", "{a} thought of {place}.", "{place}"),
            ("Who came in?", "{elder_cap} came in.", "{elder}"),
        ],
    )


@plot("The Kind Giant")
def giant(R):
    return (
        [
            "A giant lived near {place}. Everybody was afraid of him because he was so [big|tall|loud].",
            "{day_}{a} [walked too far|chased a {color} butterfly|lost {a_his} way] and came to the giant's house. {a} was [afraid|shaking], but {a_he} knocked on the door.",
            '"Who is there?" said a deep voice. "It is only me, {a}," {a_he} said. "[I am lost|Can you help me|I need to go home]."',
            'The giant opened the door. He [was crying|looked sad|was holding a tiny {obj}]. "Nobody ever visits me," he said. "[They all run away|They think I am bad]."',
            '"You do not look bad," said {a}. "[You look lonely.|I think you are nice.|Would you like a friend?]" The giant smiled. He gave {a} a [huge|very big] {food}.',
            'Then the giant [carried {a} home on his shoulder|showed {a} the way]. {b} and {c} [were scared at first|hid behind a wall], but {a} said, "He is my friend!" [After that, the giant was never lonely.|Soon everyone came to play with the giant.]',
        ],
        [
            ("Where did the giant live?", "The giant lived near {place}.", "{place}"),
            ("What did the giant give {a}?", "The giant gave {a} a {food}.", "{food}"),
            ("Why was the giant sad?", "The giant was sad because nobody ever visited him.", "nobody"),
        ],
    )
