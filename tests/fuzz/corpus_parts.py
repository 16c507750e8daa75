#!/usr/bin/env python3
"""corpus_parts.py - writes the corpora of targets whose inputs say what to change in good files
(parts.h), and those of documents.

    python3 tests/fuzz/corpus_parts.py tests/fuzz/corpus

Each entry is one mistake that has been made, or that a reader must not fall for."""
import struct
import sys
from pathlib import Path


def i4(*values):
    return struct.pack(f"<{len(values)}i", *values)


def i8(*values):
    return struct.pack(f"<{len(values)}q", *values)


def f4(*values):
    return struct.pack(f"<{len(values)}f", *values)


def f8(*values):
    return struct.pack(f"<{len(values)}d", *values)


def parts(*pairs, flags="0"):
    """FLAGS @@KIND BYTES ...; texts and bytes may be mixed."""
    out = flags.encode("latin-1")
    for kind, value in pairs:
        out += b"@@" + kind.encode() + (value.encode() if isinstance(value, str) else value)
    return out


def stream():
    nan, inf = float("nan"), float("inf")
    small = (("s", i4(0, 1, 0, 1)), ("d", i4(0, 1, 1, 0)), ("t", f8(1, 2, 2, 3)), ("i", i8(3, 7)),
             ("j", i8(0, 2**62)))
    words = "1"
    yield "good", parts()
    yield "good_words", parts(flags=words)
    yield "good_strict", parts(flags="2")
    yield "good_time", parts(flags="4")
    yield "small", parts(*small)
    yield "one_event", parts(("s", i4(0)), ("d", i4(0)), ("t", f8(0)), ("i", i8(5)), ("j", i8(5)))
    yield "source_outside", parts(*small[1:], ("s", i4(0, 2, 0, 1)))
    yield "source_negative", parts(*small[1:], ("s", i4(0, -1, 0, 1)))
    yield "destination_outside", parts(small[0], ("d", i4(0, 9999, 1, 0)), *small[2:])
    yield "time_falls", parts(*small[:2], ("t", f8(1, 3, 2, 3)), *small[3:])
    yield "time_nan", parts(*small[:2], ("t", f8(1, nan, 2, 3)), *small[3:])
    yield "time_infinite", parts(*small[:2], ("t", f8(-inf, 1, 2, inf)), *small[3:])
    yield "ids_fall", parts(*small[:3], ("i", i8(7, 3)), small[4])
    yield "ids_equal", parts(*small[:3], ("i", i8(7, 7)), small[4])
    yield "ids_negative", parts(*small[:3], ("i", i8(-7, 3)), small[4])
    yield "word_id_outside", parts(("i", i8(0, 1000000, 2)), flags=words)
    yield "word_id_negative", parts(("j", i8(0, -5, 2)), flags=words)
    yield "words_cut", parts(("w", "a\nb"), flags=words)
    yield "words_empty", parts(("w", ""), flags=words)
    yield "words_blank", parts(("x", "\n\n\n"), flags=words)
    yield "features_short", parts(("f", f4(1, 2, 3)), flags=words)
    yield "features_nan", parts(("f", f4(*[nan] * 12)), flags=words)
    yield "counts_huge", parts(("m", "events=9223372036854775807\nsources=4294967297"))
    yield "counts_negative", parts(("m", "events=-1"))
    yield "width_huge", parts(("m", "feature_width=4611686018427387904"))
    yield "manifest_text", parts(("M", "{}"))
    yield "manifest_no_json", parts(("M", "not JSON"))
    yield "manifest_list", parts(("M", "[1,2]"))
    yield "manifest_hash", parts(("m", "sha256=no hash"))
    yield "manifest_name", parts(("m", "name=../\x1b[31m"))
    yield "synth_gone", parts(("m", "synth="))
    yield "synth_text", parts(("m", "synth=tiny"))
    yield "synth_numbers", parts(("m", "sources=1e300\ndestinations=-5\nrepeat=2"))
    yield "no_npy", parts(("S", "no array"), ("T", ""))


def ranks():
    record = struct.pack("<qqqdBBiiiiiidddiiifiiid", 70, 1, 2, 3.0, 1, 0, 10, 4, 1, 5, 2, 1, .25, .1,
                         .1, 8, 3, 1, .5, 1, 2, 3, 4.0)
    least, most = -2**31, 2**31 - 1
    extreme = struct.pack("<qqqdBBiiiiiidddiiifiiid", -2**63, -1, 2**63 - 1, float("nan"), 1, 255,
                          most, most, most, least, least, least, float("inf"), -1.0, 2.0, most,
                          least, -1, float("nan"), -1, least, most, -0.0)
    yield "good", parts(flags="")
    yield "record", parts(("r", record), flags="")
    yield "record_extreme", parts(("r", extreme), flags="")
    yield "n_least", parts(("r", record.replace(i4(10, 4, 1), i4(least, 1, least))), flags="")
    yield "tied_most", parts(("r", record.replace(i4(10, 4, 1), i4(most, most, most))), flags="")
    yield "json_empty", parts(("J", "{}"), flags="")
    yield "json_list", parts(("J", "[]"), flags="")
    yield "protocol_text", parts(("j", "protocol=fixed"), flags="")
    yield "protocol_deep", parts(("j", 'window={"a":[1,{"b":null}]}'), flags="")
    yield "oov_unknown", parts(("j", "oov=ignore"), flags="")
    yield "oov_zero", parts(("j", "oov=zero"), flags="")
    yield "hash_other", parts(("j", "sha256=00"), flags="")
    yield "hash_number", parts(("j", "sha256=5"), flags="")
    yield "seed_real", parts(("j", "seed=1e300\nseconds=true"), flags="")
    yield "verify_text", parts(("j", "verify=no"), flags="")
    yield "npy_other", parts(("R", "no array"), flags="")


def catalog():
    yield "ids", b"@@t1\n2\n3\n"
    yield "comments", b"@@t# ids\n\n  7 \r\n8\t\n"
    yield "twice", b"@@t5\n6\n5\n"
    yield "word", b"@@tone\n"
    yield "negative", b"@@t-1\n"
    yield "long", b"@@t" + b"1" * 100 + b"\n"
    yield "huge", b"@@t9223372036854775807\n9223372036854775808\n"
    yield "empty", b"@@t"
    yield "no_newline", b"@@t4"
    yield "nul", b"@@t4\0\n5\n"
    yield "word_return", b"@@tone\rtwo\n"
    yield "npy", b"@@a" + i8(1, 5, 3)
    yield "npy_negative", b"@@a" + i8(1, -5, 3)
    yield "npy_twice", b"@@a" + i8(1, 1)
    yield "npy_empty", b"@@a"
    yield "npy_magic", b"@@A\x93NUMPY"


def scores():
    for flags in "012456":
        yield f"zeros_{flags}", parts(flags=flags)
    yield "nan", parts(("a", f4(float("nan"))), flags="1")
    yield "infinite", parts(("a", f8(float("inf"), -float("inf"))), flags="2")
    yield "fine", parts(("a", f8(1, 1 + 2**-50, 5e-324, -5e-324, 1e308)), flags="2")
    yield "half", parts(("a", struct.pack("<5e", 1, 6e-8, -65504, float("inf"), float("nan"))))
    yield "columns", parts(("w", b"\3\0"), flags="1")
    yield "events", parts(("e", i8(*range(68, 80))), flags="1")
    yield "events_outside", parts(("e", i8(68, -1, 2**62)), flags="1")
    yield "events_least", parts(("e", i8(-2**63, 2**63 - 1)), flags="1")
    yield "events_twice", parts(("e", i8(*[70] * 12)), flags="1")
    yield "destinations", parts(("d", i8(*range(30))), flags="1")
    yield "destinations_unknown", parts(("d", i8(-1, 2**62)), flags="1")
    yield "json", parts(("j", '{"events": [70, 71], "destinations": [1, 2]}'), flags="1")
    yield "json_words", parts(("j", '{"events": ["a"], "destinations": {}}'), flags="1")
    yield "json_empty", parts(("j", ""), flags="1")
    yield "no_npy", parts(("A", "no array"), flags="1")


def tensors(edits):
    """The same changes in checkpoints and states of all models."""
    for number in range(edits):
        flags = chr(number)
        yield f"good_{number}", parts(flags=flags)
        yield f"value_nan_{number}", parts(("b", b"\2\0\xff\3\0\x7f\0\0\1"), flags=flags)
        yield f"shape_{number}", parts(("h", "40=[1,1]"), flags=flags)
    yield "dim_huge", parts(("h", "dim=1024"), flags="\0")
    yield "dim_text", parts(("h", "dim=x"), flags="\0")
    yield "history_huge", parts(("h", "history=100000"), flags="\0")
    yield "layers_more", parts(("h", "layers=8"), flags="\4")
    yield "model_other", parts(("h", "model=tgn"), flags="\0")
    yield "model_unknown", parts(("h", "model=none"), flags="\0")
    yield "window_other", parts(("h", "window=81"), flags="\0")
    yield "order_other", parts(("h", "order=strict"), flags="\0")
    yield "hash_other", parts(("h", "data_sha256=0"), flags="\0")
    yield "seed_huge", parts(("h", 'seed="1e30"'), flags="\0")
    yield "seed_number", parts(("h", "seed=1e300"), flags="\0")
    yield "dtype", parts(("h", "dtype=F64"), flags="\0")
    yield "offsets", parts(("h", "data_offsets=[0,9223372036854775807]"), flags="\0")
    yield "data_cut", parts(("l", b"\x10\0"), flags="\0")
    yield "vocabulary_gone", parts(("h", "vocab.src="), flags="\0")
    yield "raw", parts(("R", "no tensors"), flags="\0")


def checkpoint():
    yield from tensors(7)


def state():
    yield from tensors(7)
    for number in range(7):
        yield f"trained_{number}", parts(flags=chr(128 + number))
    yield "step_other", parts(("h", "step=7"), flags="\0")
    yield "epochs_huge", parts(("h", "epochs_done=4294967297\nstep=4294967297"), flags="\0")
    yield "epochs_negative", parts(("h", "epochs_done=-1\nstep=-1"), flags="\0")
    yield "history_list", parts(("h", "epoch_history=[]"), flags="\0")
    yield "history_texts", parts(("h", 'epoch_history="{\\"loss\\":[\\"a\\"],\\"seconds\\":[{}]}"'),
                                 flags="\0")


def config():
    texts = {
        "protocol": '1{"window": 1000, "order": "strict"}',
        "import": '0{"ids": "words", "columns": "time=1", "shared_ids": true}',
        "training": '5{"lr": 0.1, "epochs": 3}',
        "range": '5{"lr": 1e300}',
        "huge": '5{"epochs": 9223372036854775807}',
        "real_for_whole": '5{"epochs": 3.5}',
        "unknown": '1{"windw": 5}',
        "null": '1{"window": null}',
        "deep": '1{"window": {"a": [1]}}',
        "list": "1[]",
        "text": "1no JSON",
        "twice": '1{"window": 1, "window": 2}',
        "choice": '1{"order": ""}',
        "flag": '5{"resume": "maybe"}',
        "nul": '1{"catalog": "a\\u0000b"}',
        "long": '1{"catalog": "%s"}' % ("a" * 4100),
        "key_return": '5{"\\resume": "may"}',
        "empty": "1",
    }
    # The first byte modulo 9 is the number of the table.
    for name, text in texts.items():
        yield name, bytes([int(text[0])]) + text[1:].encode()


def study():
    yield "small", b'{"name": "s", "data": ["a"], "baselines": ["recency"]}'
    yield "models", (b'{"data": {"a": "x.csv"}, "models": ["craft", "tgn"], "seeds": [1, 2],'
                     b' "objectives": {"bce": ["craft"], "bpr": ["tgn"]}, "gain": ["craft", "tgn"]}')
    yield "all", (b'{"data": {"s": {"synth": "tiny", "events": 100}}, "protocol": {"window": 64},'
                  b' "diagnostic-window": 64, "baselines": ["recency"], "oracle": true,'
                  b' "models": ["craft"], "seeds": [7], "settings": {"dim": 8, "epochs": 1},'
                  b' "k": [5, 20], "minimal": true, "membership": {"bce": ["craft"]},'
                  b' "projection": ["craft"], "scaling": ["craft"]}')
    yield "empty", b"{}"
    yield "list", b"[]"
    yield "data_twice", b'{"data": ["a", "a"]}'
    yield "data_colon", b'{"data": ["a:b", "a-b"]}'
    yield "data_path", b'{"data": ["../a"]}'
    yield "data_number", b'{"data": [1]}'
    yield "k_twice", b'{"data": ["a"], "k": [5, 5]}'
    yield "k_huge", b'{"data": ["a"], "k": [9223372036854775807]}'
    yield "seeds_none", b'{"data": ["a"], "models": ["craft"]}'
    yield "seeds_twice", b'{"data": ["a"], "models": ["craft"], "seeds": [7, 7]}'
    yield "baseline_long", b'{"data": ["a"], "baselines": ["%s"]}' % (b"x" * 300)
    yield "name_long", b'{"data": ["%s"], "minimal": true, "oracle": true}' % (b"n" * 600)
    yield "settings_list", b'{"data": ["a"], "settings": []}'
    yield "settings_deep", b'{"data": ["a"], "settings": {"dim": [1]}}'
    yield "gain_one", b'{"data": ["a"], "models": ["craft"], "seeds": [1], "gain": ["craft"]}'
    yield "unknown", b'{"dta": ["a"]}'
    yield "ranks", (b'{"data": {"a": null, "b": "b"}, "seeds": [7, 17], "gain": ["m", "n"],'
                    b' "membership": {}, "ranks": {"m": {"a": ["x.npy", "y.npy"], "b": "z.npy"}},'
                    b' "scorers": {"n": {"b": {"7": "scores:s-*.npy", "9": "plugin:p.so,w=1"}}}}')
    yield "ranks_lists", b'{"data": ["a"], "seeds": [7], "ranks": {"m": ["x.npy", "y.npy"]}}'
    yield "ranks_name", b'{"data": ["a"], "baselines": ["edgebank,memory=window"], "ranks": {"EdgeBank": "x"}}'
    yield "ranks_seed", b'{"data": ["a"], "ranks": {"m": {"-9223372036854775809": "x.npy"}}}'
    yield "ranks_none", b'{"data": {"a": null}, "ranks": {"m": {}}}'
    yield "scorers_null", b'{"data": {"a": null}, "scorers": {"m": "oracle"}}'


def study_db():
    for name, sql in {
            "good": "",
            "bytes_negative": "update artefact set bytes = -1",
            "bytes_huge": "update artefact set bytes = 9223372036854775807",
            "bytes_small": "update artefact set bytes = 1",
            "bytes_null": "update artefact set bytes = null",
            "content_null": "update artefact set content = null",
            "content_text": "update artefact set content = 'text'",
            "content_cut": "update artefact set content = substr(content, 1, 20)",
            "hash": "update artefact set sha256 = 'no'",
            "window_null": "update run set window = null",
            "kind_null": "update run set data = null, model = null, seed = null",
            "kind_unknown": "update run set kind = 'other'",
            "key_blob": "update run set key = x'00' || id",
            "plan_null": "update study set plan = null, name = null",
            "plan_text": "update study set plan = '{}'",
            "plan_gone": "delete from study",
            "metric_null": "update metric set value = null, events = null",
            "metric_text": "update metric set value = 'many', events = 'few'",
            "metric_huge": "update metric set value = 1e999, events = 9223372036854775807",
            "metric_gone": "delete from metric",
            "timing_text": "update timing set seconds = 'long'",
            "timing_negative": "update timing set seconds = -1e308",
            "runs_gone": "delete from run",
            "table_gone": "drop table metric",
            "column_gone": "alter table run rename column window to other",
            "status_running": "update run set wanted = 0",
    }.items():
        yield name, parts(("q", sql))
    yield "report", parts(flags="!")
    yield "header", parts(("b", b"\0\0X"))
    yield "page_size", parts(("b", b"\x10\0\2\x11\0\0"))
    yield "root_page", parts(("b", b"\x64\0\2"))
    yield "raw", parts(("R", "no database"))
    yield "raw_empty", parts(("R", ""))


def main():
    root = Path(sys.argv[1])
    for target in stream, ranks, catalog, scores, checkpoint, state, config, study, study_db:
        folder = root / target.__name__
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in target():
            (folder / name).write_bytes(value)


main()
