"""Models as libraries have them, trained by tarn.torch.step and eagerly: a row for each says whether all was bit-equal, and
what the arena needs; or why it ran eagerly. Needs torchvision, timm and transformers beside PyTorch, which nothing installs.

    pip install torchvision timm transformers
    TARN_LIBRARY=build/libtarn.so PYTHONPATH=python OMP_NUM_THREADS=1 python tests/python/torch/models.py [--fuse] [NAMES...]

--fuse: Inductor's kernels, with how much losses differ; compiling them takes minutes for each model."""
import copy
import sys
import warnings

import timm
import torch
import torch.nn.functional as F
import torchvision
import transformers as hf

import tarn.torch

FUSED = "--fuse" in sys.argv
STEPS, WORDS = 5, 200
SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": WORDS}
ENCODER = {"d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
           "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "vocab_size": WORDS, "pad_token_id": 0, "bos_token_id": 1,
           "eos_token_id": 2}
VISION = {"resnet18": 64, "swin_t": 64, "efficientnet_b0": 64, "convnext_tiny": 64, "mobilenet_v3_small": 64, "densenet121": 64,
          "shufflenet_v2_x0_5": 64, "squeezenet1_1": 96, "regnet_y_400mf": 64, "mnasnet0_5": 64}
TIMM = {"mixer_s32_224": 224, "deit_tiny_patch16_224": 224, "dm_nfnet_f0": 64, "convmixer_768_32": 64, "efficientvit_b0": 64,
        "fastvit_t8": 64}


def words():
    return torch.randint(3, WORDS, (2, 16))


def language(**more):
    ids = words()
    return {"input_ids": ids, "labels": ids.clone(), **more}


def classified(count=2):
    return {"input_ids": words(), "labels": torch.randint(0, count, (2,))}


def pictures(count=5):
    return {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.randint(0, count, (2,))}


def sounds():
    return {"input_features": torch.randn(2, 20, 100), "labels": words()}


WORDY = {  # model, configuration, batch
    "BertForSequenceClassification": (hf.BertConfig, SMALL, classified), "GPT2LMHeadModel":
    (hf.GPT2Config, {"vocab_size": WORDS, "n_embd": 64, "n_layer": 2, "n_head": 4}, language),
    "T5ForConditionalGeneration": (hf.T5Config, {"vocab_size": WORDS, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2,
                                                 "num_heads": 4, "decoder_start_token_id": 0}, language),
    "LlamaForCausalLM": (hf.LlamaConfig, {**SMALL, "num_key_value_heads": 2}, language),
    "Qwen2ForCausalLM": (hf.Qwen2Config, {**SMALL, "num_key_value_heads": 2}, language),
    "MixtralForCausalLM": (hf.MixtralConfig, {**SMALL, "num_key_value_heads": 2, "num_local_experts": 4}, language),
    "DistilBertForMaskedLM": (hf.DistilBertConfig, {"vocab_size": WORDS, "dim": 64, "n_layers": 2, "n_heads": 4,
                                                    "hidden_dim": 128}, language),
    "AlbertForMaskedLM": (hf.AlbertConfig, {**SMALL, "embedding_size": 32}, language),
    "RobertaForSequenceClassification": (hf.RobertaConfig, SMALL, classified),
    "DebertaV2ForSequenceClassification": (hf.DebertaV2Config, {**SMALL, "relative_attention": True, "pos_att_type":
                                                                ["p2c", "c2p"], "max_position_embeddings": 64}, classified),
    "BartForConditionalGeneration": (hf.BartConfig, ENCODER, language),
    "WhisperForConditionalGeneration": (hf.WhisperConfig, {**ENCODER, "num_mel_bins": 20, "max_source_positions": 50,
                                                           "decoder_start_token_id": 1}, sounds),
    "MambaForCausalLM": (hf.MambaConfig, {"vocab_size": WORDS, "hidden_size": 64, "num_hidden_layers": 2, "state_size": 8},
                         language),
    "ViTForImageClassification": (hf.ViTConfig, {**SMALL, "image_size": 32, "patch_size": 8, "num_labels": 5}, pictures),
    "SwinForImageClassification": (hf.SwinConfig, {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2],
                                                   "num_heads": [2, 4], "window_size": 4, "num_labels": 5}, pictures),
}


def classes(model, x, y):
    return F.cross_entropy(model(x), y)


def told(model, batch):
    return model(**batch).loss


def cases():
    """name -> (makes the model, makes a batch, loss)"""
    for library, sizes in ((torchvision.models.get_model, VISION), (timm.create_model, TIMM)):
        for name, size in sizes.items():
            yield (name, lambda library=library, name=name: library(name, num_classes=10),
                   lambda size=size: (torch.randn(2, 3, size, size), torch.randint(0, 10, (2,))), classes)
    for name, (config, options, batch) in WORDY.items():
        make = getattr(hf, name)
        yield (name, lambda make=make, config=config, options=options: make(config(**options)),
               lambda batch=batch: (batch(),), told)


def train(step, data):
    torch.manual_seed(2)
    return [step(*batch) for batch in data]


def row(make, batch, loss):
    torch.manual_seed(0)
    one = make().train()
    two = copy.deepcopy(one)
    eager, planned = (torch.optim.AdamW(model.parameters(), lr=1e-3) for model in (one, two))
    data = [batch() for _ in range(STEPS)]

    def eager_step(*batch):
        result = loss(one, *batch)
        result.backward()
        eager.step()
        eager.zero_grad()
        return result.detach()

    step = tarn.torch.step(two, planned, loss, data[0], reorder=True, fuse=FUSED)
    expected, found = train(eager_step, data), train(step, data)
    if FUSED:
        told = "not fused" if step._first is None or not step._first.fused else difference(expected, found)
        return f"{told} | {step.report()}" + (f"; {step.reason}" if step.reason else "")
    equal = all(map(torch.equal, expected, found))
    for tensors in ("parameters", "buffers"):
        equal &= all(map(torch.equal, getattr(one, tensors)(), getattr(two, tensors)()))
    return f"{'yes' if equal else 'NO'} | {step.report()}"


def difference(one, two):
    """Of losses, relative."""
    one, two = torch.stack(one).double(), torch.stack(two).double()
    return f"{float((one - two).norm() / two.norm()):.0e}"


def main():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    hf.logging.set_verbosity_error()
    print("| model | bit-equal | |\n|---|---|---|", flush=True)
    for name, *case in cases():
        names = [word for word in sys.argv[1:] if word != "--fuse"]
        if not names or name in names:
            print(f"| {name} | {row(*case)} |", flush=True)


if __name__ == "__main__":
    main()
