#!/usr/bin/env python3
"""Makes examples/demo-model: a small Llama that tells short stories (development only; needs torch, transformers, tokenizers).

The training text is written by this file too (a grammar of simple stories), so all of it may be shipped under the
project's licence. `--text-only` writes examples/demo-model/stories.txt and stops.

  python tools/make_demo_model.py [--minutes 12] [--threads 1]
"""
import argparse
import json
import math
import os
import random
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "examples", "demo-model")
END = "<|endoftext|>"

GIRLS = "Anna Lily Mia Nora Ruth Clara Ella Ivy Rose Sara Tess Zoe".split()
BOYS = "Ben Finn Jack Leo Max Oscar Paul Sam Tom Will Adam Hugo".split()
ANIMALS = ["cat", "dog", "fox", "hen", "mouse", "owl", "rabbit", "duck", "goat", "bear", "pony", "frog"]
TRAITS = [("kind", "liked to help"), ("brave", "was not afraid of the dark"), ("curious", "asked many questions"),
          ("shy", "did not talk much"), ("quick", "could run very fast"), ("quiet", "loved to sit and read"),
          ("cheerful", "sang all day long"), ("careful", "always looked twice"), ("stubborn", "never gave up"),
          ("clever", "could solve any riddle")]
HOMES = ["in a small house by the sea", "in a village near the forest", "on a farm behind the hill",
         "in a tall tower in the city", "in a white house beside the river", "at the edge of a green valley"]
THINGS = ["red kite", "silver key", "blue boat", "wooden flute", "little lamp", "golden bell", "warm scarf", "old map",
          "round stone", "paper crown", "green umbrella", "glass marble"]
PLACES = ["the garden", "the forest", "the beach", "the market", "the bridge", "the old mill", "the meadow", "the lake",
          "the library", "the hill"]
WEATHER = [("sunny", "The sky was blue and the birds were singing."), ("rainy", "Drops of rain ran down the window."),
           ("windy", "The wind blew the leaves along the path."), ("cold", "There was snow on the roof."),
           ("foggy", "It was hard to see the road."), ("warm", "The air smelled of flowers.")]
FOODS = ["bread and honey", "apple pie", "hot soup", "pancakes", "a bowl of berries", "cheese and plums"]
TIMES = ["One morning", "One day", "One afternoon", "Early in the spring", "On a Sunday", "Late in the summer"]
SPOTS = ["under a bench", "behind a tree", "in the tall grass", "beside a well", "inside a hollow log", "between two rocks",
         "on top of a wall", "near an empty nest"]
LESSONS = {
    "lost": ["It is easier to look when you do not look alone.", "Things that we love are worth a long walk.",
             "A good friend is better than good luck."],
    "share": ["Things are nicer when they are shared.", "A gift can make two people happy.",
              "The more you give, the more you have."],
    "fear": ["Being brave means going on when you are afraid.", "Most shadows are smaller than they look.",
             "Every fear is smaller in the morning."],
    "build": ["Many small steps make a long road.", "Work is light when many hands help.",
              "If it does not work at first, try again."],
}


class Story:
    """One story: who, where, what, and a plot that keeps them the same from beginning to end."""

    def __init__(self, rng):
        self.rng = rng
        girl = rng.random() < 0.5
        self.name = rng.choice(GIRLS if girl else BOYS)
        self.he, self.him, self.his = ("she", "her", "her") if girl else ("he", "him", "his")
        self.kid = "girl" if girl else "boy"
        other = rng.random() < 0.5
        self.friend = rng.choice([n for n in (GIRLS if other else BOYS) if n != self.name])
        self.fhe, self.fhim, self.fhis = ("she", "her", "her") if other else ("he", "him", "his")
        self.animal = rng.choice(ANIMALS)
        self.trait, self.habit = rng.choice(TRAITS)
        self.home, self.thing, self.food = rng.choice(HOMES), rng.choice(THINGS), rng.choice(FOODS)
        self.place, self.far = rng.sample(PLACES, 2)
        self.weather, self.sky = rng.choice(WEATHER)
        self.spot = rng.choice(SPOTS)

    def pick(self, *options):
        text = self.rng.choice(options)
        text = text.format(He=self.he.capitalize(), His=self.his.capitalize(), Fhe=self.fhe.capitalize(), s=self)
        article = "an" if self.animal[0] in "aeiou" else "a"
        return text.replace("a " + self.animal, article + " " + self.animal).replace("a old", "an old")

    def opening(self):
        p = self.pick
        return [p("Once upon a time there was a {s.trait} {s.kid} named {s.name}.",
                  "There once was a {s.kid} called {s.name}, who was very {s.trait}.",
                  "{s.name} was a {s.trait} {s.kid}."),
                p("{He} lived {s.home}.", "{He} lived {s.home} with {s.his} grandmother.",
                  "{His} family lived {s.home}."),
                p("{s.name} {s.habit}.", "{He} {s.habit}, and everyone knew it.", "Every day {s.he} played with a {s.animal}."),
                p("{s.name} had a {s.thing} that {s.he} loved very much.", "{His} best treasure was a {s.thing}.",
                  "For {s.his} birthday {s.he} got a {s.thing}.")]

    def day(self):
        return [self.pick("%s it was {s.weather}." % self.rng.choice(TIMES), "%s the day was {s.weather}." % self.rng.choice(TIMES)),
                self.sky]

    def lost(self):
        p = self.pick
        return [p("{s.name} took the {s.thing} and went to {s.place}.", "{s.name} walked to {s.place} with the {s.thing}."),
                p("When {s.he} came home, the {s.thing} was gone.", "On the way back {s.he} saw that the {s.thing} was gone."),
                p("\"Oh no!\" said {s.name}. \"Where is my {s.thing}?\"", "\"I have lost my {s.thing},\" {s.he} said, and {s.he} was sad."),
                p("{s.name} asked {s.friend} for help.", "{His} friend {s.friend} heard {s.him} and came to help."),
                p("\"Let us look at {s.place},\" said {s.friend}.", "\"Where did you see it last?\" asked {s.friend}. \"At {s.place},\" said {s.name}."),
                p("They looked at {s.place}, but they did not find it.", "First they looked everywhere at home. Then they went to {s.place}."),
                p("A {s.animal} sat {s.spot} and looked at them.", "Then they heard a {s.animal} {s.spot}."),
                p("The {s.animal} was sitting on the {s.thing}!", "Beside the {s.animal} lay the {s.thing}."),
                p("\"Thank you, little {s.animal},\" said {s.name}.", "{s.name} laughed and gave the {s.animal} some bread."),
                p("{s.name} and {s.friend} went home and ate {s.food}.", "That evening the two friends ate {s.food}.")]

    def share(self):
        p = self.pick
        return [p("{s.name} went to {s.place} to play with the {s.thing}.", "{s.name} carried the {s.thing} to {s.place}."),
                p("There {s.he} met {s.friend}, who had nothing to play with.", "{s.friend} was there, sitting {s.spot}, all alone."),
                p("\"May I play with your {s.thing}?\" asked {s.friend}.", "\"What a fine {s.thing}!\" said {s.friend}. \"May I hold it?\""),
                p("\"No,\" said {s.name}. \"It is mine.\"", "{s.name} held the {s.thing} behind {s.his} back and said no."),
                p("{s.friend} looked sad and walked away to {s.far}.", "{s.friend} said nothing and went to {s.far}."),
                p("But playing alone was not much fun.", "After a while {s.name} did not feel happy any more."),
                p("A {s.animal} came by, and even the {s.animal} seemed to wait for {s.friend}.", "{He} thought of {s.friend}, and {s.his} heart was heavy."),
                p("So {s.name} ran to {s.far} and found {s.friend}.", "{s.name} went to {s.far} and looked for {s.friend}."),
                p("\"I am sorry,\" said {s.name}. \"Let us play together.\"", "\"Here,\" said {s.name}, \"you may have the first turn.\""),
                p("They played with the {s.thing} until the sun went down.", "{s.friend} smiled, and they shared the {s.thing} and {s.food} too.")]

    def fear(self):
        p = self.pick
        return [p("{s.name} had to go to {s.place} to bring {s.food} to {s.friend}.", "{s.friend} was ill, so {s.name} took {s.food} to {s.place}, where {s.friend} lived."),
                p("The way went past {s.far}, and it was getting dark.", "To get there {s.he} had to pass {s.far} in the dark."),
                p("Suddenly there was a noise.", "Then something moved {s.spot}."),
                p("\"Who is there?\" asked {s.name}.", "{s.name} stood still and held the {s.thing} tight."),
                p("Nobody answered.", "There was no answer, only the wind."),
                p("{s.name} was afraid, but {s.he} took one step, and then another.", "{His} knees were shaking, but {s.he} went on."),
                p("It was only a {s.animal}!", "Out came a {s.animal}, small and wet."),
                p("The {s.animal} was more afraid than {s.name}.", "\"You are only a {s.animal}!\" said {s.name} and laughed."),
                p("The {s.animal} walked beside {s.him} all the way to {s.place}.", "{s.name} picked up the {s.animal} and carried it along."),
                p("{s.friend} was very happy to see them both.", "\"How brave you are!\" said {s.friend}, and they ate {s.food}.")]

    def build(self):
        p = self.pick
        return [p("{s.name} wanted to build a house for a {s.animal}.", "A {s.animal} had no place to sleep, so {s.name} wanted to build a house for it."),
                p("{He} found some wood at {s.place}.", "{He} carried stones from {s.place}."),
                p("{He} worked all day, but the house fell down.", "The first house was too small, and the wind blew it over."),
                p("\"I will try again,\" said {s.name}.", "\"It does not matter,\" {s.he} said. \"Tomorrow I will begin again.\""),
                p("{s.friend} came from {s.far} and saw {s.him} working.", "The next day {s.friend} came along the road from {s.far}."),
                p("\"May I help you?\" asked {s.friend}.", "\"Two can carry more than one,\" said {s.friend}."),
                p("{s.friend} held the wall, and {s.name} made the roof.", "{s.name} cut the wood, and {s.friend} put it together."),
                p("In the evening the house was done.", "After three days the little house was ready."),
                p("They hung the {s.thing} over the door.", "{s.name} put the {s.thing} inside, to make it look pretty."),
                p("The {s.animal} went in and fell asleep.", "The {s.animal} looked at it from all sides and moved in.")]

    def text(self):
        plot = self.rng.choice(list(LESSONS))
        head, day, body = self.opening(), self.day(), getattr(self, plot)()
        end = self.pick("From that day on {s.name} and {s.friend} were best friends.", "And {s.name} slept very well that night.",
                        "{s.name} never forgot that day.", "They all were happy.")
        return " ".join(head) + "\n" + " ".join(day + body) + "\n" + end + " " + self.rng.choice(LESSONS[plot]) + "\n"


def write_text(path, size, seed=7):
    rng = random.Random(seed)
    parts, total = [], 0
    while total < size:
        story = Story(rng).text()
        parts.append(story)
        total += len(story) + 1
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(parts))


def train_tokenizer(text_path, vocab):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocab, special_tokens=[END], initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                                  show_progress=False)
    tok.train([text_path], trainer)
    tok.save(os.path.join(OUT, "tokenizer.json"))
    with open(os.path.join(OUT, "tokenizer_config.json"), "w") as f:
        json.dump({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "model_max_length": 512, "clean_up_tokenization_spaces": False}, f, indent=2)
        f.write("\n")
    return tok


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=12)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--text-only", action="store_true")
    args = parser.parse_args()
    os.makedirs(OUT, exist_ok=True)
    text_path = os.path.join(OUT, "stories.txt")
    write_text(text_path, 1_200_000)
    if args.text_only:
        return

    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    tok = train_tokenizer(text_path, 2048)  # at most: the text has fewer pieces
    end = tok.token_to_id(END)
    ids = []
    with open(text_path, encoding="utf-8") as f:
        for story in f.read().split("\n\n"):
            ids += tok.encode(story.rstrip("\n") + "\n").ids + [end]
    data = torch.tensor(ids)
    print(f"{len(ids)} tokens, vocabulary {tok.get_vocab_size()}", flush=True)
    config = LlamaConfig(vocab_size=tok.get_vocab_size(), hidden_size=192, intermediate_size=512, num_hidden_layers=6, num_attention_heads=6,
                         num_key_value_heads=2, max_position_embeddings=512, rms_norm_eps=1e-5, tie_word_embeddings=True,
                         bos_token_id=end, eos_token_id=end, rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
    model = LlamaForCausalLM(config)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.05)
    batch, seq, started, step, peak = 6, 256, time.time(), 0, 2.5e-3
    while True:
        share = (time.time() - started) / (60 * args.minutes)      # the schedule follows the clock
        if share >= 1:
            break
        lr = peak * min(1, (step + 1) / 50) * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * share)))
        for g in opt.param_groups:
            g["lr"] = lr
        at = torch.randint(0, len(ids) - seq - 1, (batch,))
        x = torch.stack([data[i:i + seq] for i in at])
        loss = model(input_ids=x, labels=x).loss
        opt.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        step += 1
        if step % 25 == 0:
            print(f"{step:5d} {time.time() - started:6.0f} s  lr {lr:.2e}  loss {loss.item():.3f}", flush=True)
    model.to(torch.bfloat16).save_pretrained(OUT)
    for extra in ("generation_config.json",):
        if os.path.exists(os.path.join(OUT, extra)):
            with open(os.path.join(OUT, extra)) as f:
                text = f.read()
            with open(os.path.join(OUT, extra), "w") as f:
                f.write(text.rstrip("\n") + "\n")
    model.float().eval()
    for prompt in ("Once upon a time", "There once was a girl", "The fox"):
        x = torch.tensor([tok.encode(prompt).ids])
        print(tok.decode(model.generate(x, max_new_tokens=150, do_sample=False)[0].tolist()), "\n---", flush=True)


if __name__ == "__main__":
    main()
