"""tarn.torch.estimate against what an H100 has measured, without a GPU: nine networks of transformers and torchvision. The
figures hold for these versions (tests/setup.sh torch-models): other ones have other ops. TAP on stdout.

    tests/with_torch.sh --models tests/python/torch/measured_test.py [measured | large | budgets | models NAMES... | larger]

With arguments it prints the tables of docs/estimate.md: those networks; Llama of 7 and of 70 billion parameters; budgets;
models of libraries, small and larger ones, against what tarn.torch.step plans for them on the CPU."""
import resource
import sys
import time
import warnings

import timm
import torch
import torch.nn.functional as F
import torchvision
import transformers as hf
from cases import run

import tarn
import tarn.torch

VERSIONS = ("2.15.", "5.24.", "0.29.")
MIB, GIB = 1 << 20, 1 << 30
LLAMA = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 8, "intermediate_size": 2816, "vocab_size": 32000,
         "max_position_embeddings": 2048}
SEVEN = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "intermediate_size": 11008, "vocab_size": 32000,
         "max_position_embeddings": 4096}
SEVENTY = {**SEVEN, "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 28672}
NO_DROPOUT = {"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}

# H100 80 GB, PyTorch 2.11, fused AdamW, TF32: MiB of a step beyond what is alive before it, and milliseconds.
MEASURED = {"gpt2": (12979.7, 90.3), "resnet50": (5255.5, 37.3), "bert": (7745.6, 63.6), "llama": (11525.8, 86.9), "gpt2_amp": (11032.7, 65.4),
            "llama12_amp": (8618.3, 54.4), "gpt2_checkpoints": (5053.7, 112.1), "bert_checkpoints": (3276.1, 77.4), "llama_checkpoints": (3448.3, 108.4)}
KEPT = {"gpt2": 1489.2, "resnet50": 394.4, "bert": 1318.4, "llama": 2059.4}  # MiB before a step, cuBLAS's workspaces included


def words(model, x):
    return model(input_ids=x, labels=x).loss


def words_under_autocast(model, x):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model(input_ids=x).logits
    return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]).float(), x[:, 1:].reshape(-1))


def classes(model, x, y):
    return F.cross_entropy(model(x), y)


def llama(**sizes):
    return hf.LlamaForCausalLM(hf.LlamaConfig(use_cache=False, **sizes))


MODELS = {"gpt2": (lambda: hf.GPT2LMHeadModel(hf.GPT2Config(use_cache=False)), (8, 1024)),
          "gpt2_amp": (lambda: hf.GPT2LMHeadModel(hf.GPT2Config(use_cache=False, **NO_DROPOUT)), (8, 1024)),
          "bert": (lambda: hf.BertForMaskedLM(hf.BertConfig()), (16, 512)),
          "llama": (lambda: llama(**LLAMA).bfloat16(), (8, 1024)), "llama12_amp": (lambda: llama(**{**LLAMA, "num_hidden_layers": 12}), (8, 1024)),
          "llama7b": (lambda: llama(**SEVEN).bfloat16(), (1, 4096)), "llama70b": (lambda: llama(**SEVENTY).bfloat16(), (1, 4096))}


def estimated(name, **options):
    with torch.device("meta"):
        if name == "resnet50":
            model, loss, batch = torchvision.models.resnet50(), classes, (torch.zeros(64, 3, 224, 224), torch.zeros(64, dtype=torch.long))
        else:
            make, shape = MODELS[name.replace("_checkpoints", "")]
            model, loss, batch = make(), words_under_autocast if name.endswith("_amp") else words, (torch.zeros(shape, dtype=torch.long),)
    if name.endswith("_checkpoints"):
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    return tarn.torch.estimate(model.train(), optimizer, loss, batch, "H100", **options)


# ---- Tests ----

def nine_networks_take_what_was_measured():
    for name, (arena, _) in MEASURED.items():
        found = estimated(name)
        assert abs(found.arena / MIB / arena - 1) < 0.005, (name, found.arena / MIB, arena)
        if name in KEPT:
            assert abs((found.stays - found.device.context) / MIB / KEPT[name] - 1) < 0.005, (name, found.stays / MIB, KEPT[name])


def times_are_of_the_measured_size():
    for name in ("gpt2", "resnet50", "llama_checkpoints"):
        assert abs(1e3 * estimated(name).seconds() / MEASURED[name][1] - 1) < 0.15, name


def seventy_billion_parameters_take_no_memory_here():
    found = estimated("llama70b")
    assert not found.fits and found.persistent["parameter"] > 128 * GIB
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 3 << 20, "KiB of this process"


TESTS = [nine_networks_take_what_was_measured, times_are_of_the_measured_size, seventy_billion_parameters_take_no_memory_here]


# ---- Tables ----

def measured():
    for name, (arena, ms) in MEASURED.items():
        found = estimated(name)
        print(f"| {name} | {found.arena / MIB:.1f} | {arena} | {found.eager.held / MIB:.0f} | {1e3 * found.seconds():.1f} | {ms} |", flush=True)


def large():
    for name in ("llama7b", "llama70b"):
        begin = time.perf_counter()
        found = estimated(name, reorder=True)
        print(f"{name}: {time.perf_counter() - begin:.1f} s, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB of this process\n{found}", flush=True)
        _budgets(found)


def budgets():
    for name in ("gpt2", "resnet50", "bert", "llama"):
        found = estimated(name, reorder=True)
        print(f"{name}: reorder {found.arena / MIB:.1f} MiB", flush=True)
        _budgets(found)


def _budgets(found):
    for share in (0.75, 0.5, 0.3, "least"):
        begin = time.perf_counter()
        try:
            plan = found.least if share == "least" else found.planned(share)
            print(f"  {share}: {plan.footprint / MIB:.1f} MiB, {found.overhead(plan):+.1%}, {time.perf_counter() - begin:.1f} s", flush=True)
        except tarn.DoesNotFit as error:
            print(f"  {share}: {error}", flush=True)


def models(*names):
    from models import cases  # pylint: disable=import-outside-toplevel
    for name, make, batch, loss in cases():
        if not names or name in names:
            _compare(name, make, batch, loss)


def larger():
    sizes = {"vocab_size": 8000, "hidden_size": 512, "num_attention_heads": 8}
    images = {"resnet101": (torchvision.models.resnet101, 4, 128), "efficientnet_b3": (torchvision.models.efficientnet_b3, 4, 160),
              "regnet_x_1_6gf": (torchvision.models.regnet_x_1_6gf, 4, 128), "maxvit_t": (torchvision.models.maxvit_t, 1, 224),
              "vit_small_patch16_224": (None, 4, 224), "convnextv2_nano": (None, 4, 160), "xcit_nano_12_p16_224": (None, 2, 224),
              "coatnet_nano_rw_224": (None, 2, 224)}
    texts = {"Gemma": (lambda: hf.GemmaForCausalLM(hf.GemmaConfig(num_hidden_layers=6, num_key_value_heads=1, head_dim=64, intermediate_size=1536, **sizes)), 4, 256),
             "OPT": (lambda: hf.OPTForCausalLM(hf.OPTConfig(num_hidden_layers=6, ffn_dim=2048, word_embed_proj_dim=512, **sizes)), 4, 256),
             "Phi": (lambda: hf.PhiForCausalLM(hf.PhiConfig(num_hidden_layers=4, intermediate_size=2048, **sizes)), 2, 256),
             "Electra": (lambda: hf.ElectraForMaskedLM(hf.ElectraConfig(vocab_size=8000)), 4, 128)}
    for name, (make, count, size) in images.items():
        _compare(f"{name}, {count} x {size}", make or (lambda name=name: timm.create_model(name)),
                 lambda count=count, size=size: (torch.randn(count, 3, size, size), torch.randint(0, 10, (count,))), classes)
    for name, (make, count, length) in texts.items():
        _compare(f"{name}, {count} x {length}", make, lambda count=count, length=length: (torch.randint(3, 900, (count, length)),), words)


def _compare(name, make, batch, loss):
    torch.manual_seed(0)
    model, example = make().train(), batch()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    try:
        found = tarn.torch.estimate(model, optimizer, loss, example, "cpu").arena
    except tarn.BadInput as error:
        print(f"| {name} | {error} |", flush=True)
        return
    step = tarn.torch.step(model, optimizer, loss, example)
    planned = step.plan.footprint if step.plan else 0
    print(f"| {name} | {found / MIB:.2f} | {planned / MIB:.2f} | {found / planned - 1:+.2%} |" if planned else f"| {name} | {step.reason} |", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    warnings.simplefilter("ignore")
    hf.logging.set_verbosity_error()
    versions = (torch.__version__, hf.__version__, torchvision.__version__)
    if len(sys.argv) > 1:
        {"measured": measured, "large": large, "budgets": budgets, "models": models, "larger": larger}[sys.argv[1]](*sys.argv[2:])
    elif not all(map(str.startswith, versions, VERSIONS)):
        print(f"1..0 # SKIP the figures are of other versions than {versions}")
    else:
        run(TESTS)
