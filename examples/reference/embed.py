#!/usr/bin/env python3
"""What 10_embed is compared with, from the tokenizer and the BERT of the library transformers. Needs torch, transformers, tokenizers,
safetensors and numpy.

  embed.py                        writes examples/data/bert: a small network with weights by a seed, the vectors that it makes of
                                  sentences.txt, and the tokens of lines.tsv; and tests/models/reference/bert.tsv: of each gradient
                                  its norm, and the sum of its elements times their places
  embed.py --letters              writes examples/unicode.hpp: what the tokenizer makes of letters, and which characters divide words;
                                  tests/format.py has to follow
  embed.py --weights FOLDER --program FILE
                                  runs the built example on the published weights in FOLDER, and compares vectors and tokens
"""
import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import torch
from tokenizers import BertWordPieceTokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

EXAMPLES = Path(__file__).resolve().parent.parent
SMALL = EXAMPLES / "data/bert"
WORDS = """a the of in by for is has and how do i that on at five two cat kitten dog sleep dozing warm window sun beside chase ball
across wet grass interest rate rose third time this year central bank made borrow more expensive again bake bread without yeast recipe
loaf need no river close café cafe o clock sill leaven""".split()
ENDINGS = "s es ed ing er est ly ment ness ful less ion al y".split()
# What the letters of examples/unicode.hpp become, and a few characters of writing without spaces.
LETTERS = ("abcdefghijklmnopqrstuvwxyz0123456789ßæøðþœαβγδεζηθικλμνξοπρστυφχψωςабвгдежзийклмнопрстуфхцчшщъыьэюяєіїђ"
           "あいうえおかきくけこさしすせそたちつてとはひふへほアイウエオカキクケコハヒフヘホᄀᄂᄃᄅᄆᄇᄉᄋᄌᄒ"
           "ᅡᅢᅥᅦᅩᅮᅳᅵᆨᆫᆯᆷᆸᆼאבגדהابتثकखगनमสวดี")
SINGLE = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~«»¡¿–—‘’“”…€£°·、。「」一人大中国日本語文字京東漢水"
LINES = r"""
A plain sentence, with a comma; and then some: two dots.
UPPER CASE, Mixed Case, and lower case
don't can't o'clock rock'n'roll
co-operate -- well — dashes – of all kinds
e-mail: someone@example.org, https://example.org/path?query=1&other=2#part
3.14159 1,000,000 12:30 50% $9.99 €5 £7 #1 1st 2nd x^2 a_b a|b ~5
(brackets) [square] {curly} <angle> "double" 'single' `back`
café naïve façade élève über Straße Ångström smørrebrød þing Œuvre ÆGIR Łódź Đorđe ŒUF
São Paulo, Zürich, Malmö, Kraków, Reykjavík, İstanbul, ılık, Ağrı, Plzeň, Győr, Žižek, Čapek
Tiếng Việt có dấu: ơn ưng ỡ ặng ễ ổ Ự ế
cafe with a mark of its own: café, naïve, Z̃
Ελλάδα, ΑΘΗΝΑ, ἄνθρωπος, ᾳ ῷ ὕδωρ, σοφός ΣΟΦΟΣ
Москва, ЙОД, ёлка, Ёж, Київ, Ђорђе, Ѐ ѝ ў Ӂ ӓ
ab一cd 漢字 日本語の文字 東京大学 中国人
ひらがな がぎぐげご ぱぴぷぺぽ カタカナ ガギグゲゴ パピプペポ ヴ ゞ
한국어 가각간 나라 말씀 위하다
עברית שָׁלוֹם العربية مَرْحَبًا हिन्दी नमस्ते สวัสดี
emoji 😀 👍🏽 ☃ ✈️ and → arrows ← ≤ signs ≠
zero​width‍joiners﻿and­hyphens
no break　wide thin spaces and	tabs
control characters and � in words
«quoted» „quoted“ ‚quoted‘ ‹quoted› “quoted” ‘quoted’ 「quoted」 『quoted』
¿Qué? ¡Sí! § ¶ † ‡ • … ‰ ′ ″ ⁂ ※
full ｗｉｄｔｈ Ｌｅｔｔｅｒｓ！ ＡＢＣ（１２３）
ligatures ﬁ ﬂ ﬀ and ǆ ǅ Ǆ ŉ ĸ ſ ẞ ŀ
[CLS without its end, CLS] and [ MASK ] in a text
##ing ## # ###
...
!?!?!?

    spaces before   and    between    and behind   
-
a
I
1
é
漢
unbelievableness sleepiness dozings borrowers chasing rosely
xylophone zzz qqqqqq supercalifragilistic
the cats and the dogs slept by the rivers' banks
"""


def lines_to_compare():
    lines = LINES.strip("\n").split("\n")
    # Words of 99 to 101 characters: more than 100 are unknown, whatever they are made of.
    lines += [f"{c * n} end" for n in (99, 100, 101) for c in ("a", "é", "漢", "-")]
    # Every letter of the tables, and around them, 64 to a line.
    for first, last in BLOCKS:
        for row in range(first, last, 64):
            lines.append(" ".join(chr(c) for c in range(row, min(row + 64, last))))
    lines.append("be\x07ll \x0b and \x0c line\x1f \x7f and \x85 and \u2028 and \ue000 re\rturned")
    lines.append("".join(chr(c) for c in range(0x2000, 0x2070) if c not in (0x2028, 0x2029)))
    lines += [" ".join(chr(c) for c in range(row, row + 48)) for row in range(0xAC00, 0xD7A4 - 48, 1117)]
    return lines


# Latin, Greek, Cyrillic and Armenian; Arabic; Latin and Greek with more marks; units, relations; kana; letters as wide as Chinese ones.
# Hangul is taken apart by a formula.
BLOCKS = ((0xC0, 0x560), (0x620, 0x640), (0x1E00, 0x2000), (0x2120, 0x2140), (0x2200, 0x2300), (0x3040, 0x3100), (0xFF20, 0xFF40))


def ranges(numbers):
    pairs = []
    for n in numbers:
        if pairs and pairs[-1][1] == n - 1:
            pairs[-1][1] = n
        else:
            pairs.append([n, n])
    return pairs


def write_letters():
    """The header with the tables."""
    normal, parts = BertNormalizer(), BertPreTokenizer()

    def pieces(c):
        return len(parts.pre_tokenize_str("a" + chr(c) + "a"))

    plane = [c for c in range(0x80, 0x10000) if not 0xD800 <= c < 0xE000]  # without halves of pairs
    blocks = []
    for first, last in BLOCKS:
        rows = []
        for row in range(first, last, 32):
            made = [normal.normalize_str(chr(c)) for c in range(row, min(row + 32, last))]
            assert all(len(m) < 2 for m in made)
            rows.append('    u"' + "".join(" " if m in ("", chr(row + i)) else m for i, m in enumerate(made)).replace('"', '\\"') + '"')
        blocks.append(f"    {{0x{first:04X},\n" + "\n".join(rows) + "},\n")
    tables = {"dropped": ranges(c for c in plane if normal.normalize_str(chr(c)) == ""),
              "punctuation": ranges(c for c in plane if pieces(c) == 3)}
    text = """// Tables of Unicode's characters from U+0080 to U+FFFF for wordpiece.hpp. Made by examples/reference/embed.py --letters.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace unicode {

/// Letters in a row, and what each becomes in lower case and without accents: a space stands where it stays as it is.
struct letters {
  char32_t first;
  std::u16string_view plain;
};
inline constexpr letters plain_letters[] = {
""" + "".join(blocks) + "};\n\nstruct range {\n  char32_t first, last;\n};\n"
    for name, what in (("dropped", "Marks on letters, and characters that show nothing."), ("punctuation", "Punctuation.")):
        text += f"/// {what}\ninline constexpr range {name}[] = {{" + ", ".join(f"{{0x{a:04X}, 0x{b:04X}}}" for a, b in tables[name]) + "};\n"
    text += """
template <std::size_t N>
bool contains(const range (&ranges)[N], char32_t c) {
  const auto after = std::upper_bound(ranges, ranges + N, c, [](char32_t x, const range& r) { return x < r.first; });
  return after != ranges && c <= std::prev(after)->last;
}

}  // namespace unicode
"""
    (EXAMPLES / "unicode.hpp").write_text(text, encoding="utf-8")


def sentence_vectors(model, tokenizer, sentences):
    """Means of the words' vectors, of length 1."""
    with torch.no_grad():
        batch = tokenizer(sentences, padding=True, truncation=True, max_length=256, return_tensors="pt")
        words = batch["attention_mask"].unsqueeze(2).float()
        hidden = model(**batch).last_hidden_state
        return torch.nn.functional.normalize((hidden * words).sum(1) / words.sum(1), dim=1).numpy()


def tokens(tokenizer, lines):
    return [" ".join(map(str, tokenizer(line)["input_ids"])) for line in lines]


def write_small():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *SINGLE, *LETTERS, *("##" + c for c in LETTERS), *WORDS, *("##" + e for e in ENDINGS)]
    pieces = list(dict.fromkeys(pieces))
    (SMALL / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    torch.manual_seed(1)
    model = BertModel(BertConfig(vocab_size=len(pieces), hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=48,
                                 max_position_embeddings=48)).eval()
    for name, p in model.named_parameters():  # large enough that each of them shows in the vectors
        torch.nn.init.normal_(p, 1.0 if name.endswith("LayerNorm.weight") else 0.0, 0.3)
    model.half().save_pretrained(SMALL)
    (SMALL / "config.json").unlink()
    tokenizer = tokenizer_of(SMALL)
    sentences = (SMALL / "sentences.txt").read_text(encoding="utf-8").splitlines()
    numpy.save(SMALL / "vectors.npy", sentence_vectors(model.float(), tokenizer, sentences))
    batch = tokenizer(sentences, padding=True, return_tensors="pt")
    kinds = (torch.arange(batch["input_ids"].shape[1]) >= 5).long().expand(len(sentences), -1)  # as if two sentences met there
    made, ramp = model(**batch, token_type_ids=kinds), torch.linspace(-1, 1, 24)
    words = batch["attention_mask"].unsqueeze(2)
    ((made.last_hidden_state * words).sum((0, 1)) @ ramp + (made.pooler_output @ ramp).sum()).backward()
    with open(EXAMPLES.parent / "tests/models/reference/bert.tsv", "w", encoding="utf-8") as file:
        for name, p in model.named_parameters():
            g = p.grad.double().flatten()
            file.write(f"{name}\t{g.norm():.8g}\t{g @ torch.linspace(0, 1, len(g), dtype=torch.double):.8g}\n")
    lines = lines_to_compare()
    with open(SMALL / "lines.tsv", "w", encoding="utf-8") as file:
        file.writelines(f"{ids}\t{line}\n" for ids, line in zip(tokens(tokenizer, lines), lines))


def tokenizer_of(folder):
    made = BertWordPieceTokenizer(str(folder / "vocab.txt"), lowercase=True)
    return PreTrainedTokenizerFast(tokenizer_object=made._tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")


def compare(folder, program):
    tokenizer, model = tokenizer_of(folder), BertModel.from_pretrained(folder).eval()
    files = ["--weights", folder / "model.safetensors", "--vocab", folder / "vocab.txt"]
    with tempfile.TemporaryDirectory() as scratch:
        def ask(text, *options):
            path = Path(scratch) / "text"
            path.write_text("\n".join(text) + "\n", encoding="utf-8")
            return subprocess.run([program, *files, "--text", path, *options], check=True, capture_output=True).stdout.decode("utf-8")

        lines = lines_to_compare()
        ours = ask(lines, "--tokens", "--max-tokens", "512").split("\n")[:-1]
        wanted = tokens(tokenizer, lines)
        wrong = [(line, a, b) for line, a, b in zip(lines, ours, wanted, strict=True) if a != b]
        for line, a, b in wrong:
            print(f"{line!r}\n  ours   {a}\n  wanted {b}")
        print(f"tokens: {len(lines)} lines, {len(wrong)} differ")
        sentences = (SMALL / "sentences.txt").read_text(encoding="utf-8").splitlines() + [l for l in lines if l.strip()]
        ask(sentences, "--save", f"{scratch}/vectors.npy")
        far = numpy.abs(numpy.load(f"{scratch}/vectors.npy") - sentence_vectors(model, tokenizer, sentences)).max()
        print(f"vectors: {len(sentences)} sentences, greatest difference {far:.2g}")
    return 1 if wrong or not far <= 1e-5 else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--letters", action="store_true")
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--program", type=Path)
    options = parser.parse_args()
    if (options.weights is None) != (options.program is None):
        parser.error("--weights and --program go together")
    if options.letters:
        return write_letters()
    return compare(options.weights, options.program) if options.weights else write_small()


if __name__ == "__main__":
    sys.exit(main())
