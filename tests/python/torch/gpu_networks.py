"""Networks at the sizes of their papers, for tables of a GPU. Language models are those of transformers, others of
torchvision or written here. `make(name)` returns (model, loss function, batch, classes of its blocks, which checkpoints run
again); with `tiny`, a network of the same kind that is small enough for a stand-in."""
import contextlib

import torch
import torch.nn.functional as F
from networks import UNet
from torch import nn


def bfloat16():
    return torch.autocast("cuda", dtype=torch.bfloat16)


def language(kind, batch, length, tiny, precision=bfloat16, dropout=0.0):
    import transformers as hf
    batch, length = (2, 32) if tiny else (batch, length)
    if kind == "GPT-2":
        small = {"n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 512} if tiny else {}
        model = hf.GPT2LMHeadModel(hf.GPT2Config(attn_pdrop=dropout, embd_pdrop=dropout, resid_pdrop=dropout, use_cache=False, **small))
        blocks = ["GPT2Block"]
    elif kind == "Llama":
        size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
                "vocab_size": 512} if tiny else {"hidden_size": 1024, "num_hidden_layers": 12, "num_attention_heads": 16,
                                                 "num_key_value_heads": 8, "intermediate_size": 2816, "vocab_size": 32000}
        model = hf.LlamaForCausalLM(hf.LlamaConfig(use_cache=False, **size))
        blocks = ["LlamaDecoderLayer"]
    else:
        small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 512} if tiny else {}
        model = hf.BertForMaskedLM(hf.BertConfig(attention_probs_dropout_prob=dropout, hidden_dropout_prob=dropout, **small))
        blocks = ["BertLayer"]
    words = model.config.vocab_size

    def loss(model, x, y):
        with precision():
            logits = model(input_ids=x).logits
        return F.cross_entropy(logits.flatten(0, 1).float(), y.flatten())

    return model, loss, [torch.randint(0, words, (batch, length), device="cuda") for _ in range(2)], blocks


def vision(name, batch, size, tiny, blocks):
    import torchvision
    batch, size = (2, 64) if tiny and "vit" not in name else (1, 224) if tiny else (batch, size)
    model = torchvision.models.get_model("resnet18" if tiny and name == "resnet50" else name).to(memory_format=torch.channels_last)

    def loss(model, x, y):
        with bfloat16():
            logits = model(x)
        return F.cross_entropy(logits.float(), y)

    x = torch.randn(batch, 3, size, size, device="cuda").to(memory_format=torch.channels_last)
    return model, loss, [x, torch.randint(0, 1000, (batch,), device="cuda")], blocks


def unet(batch, size, tiny):
    batch, size = (2, 32) if tiny else (batch, size)
    model = UNet(8 if tiny else 64).to(memory_format=torch.channels_last)

    def loss(model, x, y):
        with bfloat16():
            logits = model(x)
        return F.binary_cross_entropy_with_logits(logits.float(), y)

    x = torch.randn(batch, 3, size, size, device="cuda").to(memory_format=torch.channels_last)
    return model, loss, [x, torch.rand(batch, 1, size, size, device="cuda")], ["Sequential"]


class Experts(nn.Module):
    """A layer of experts, each with room for the same number of words: those that chose it first."""

    def __init__(self, width, inner, experts, share):
        super().__init__()
        self.choose = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, width, inner) / width**0.5)
        self.down = nn.Parameter(torch.randn(experts, inner, width) / inner**0.5)
        self.share = share

    def forward(self, x):
        words = x.flatten(0, 1)
        room = int(self.share * len(words) / len(self.up))
        weight, chosen = self.choose(words).float().softmax(-1).t().topk(room)  # experts × room
        picked = words[chosen.flatten()].unflatten(0, chosen.shape)
        made = torch.bmm(F.silu(torch.bmm(picked, self.up.to(picked.dtype))), self.down.to(picked.dtype))
        made = made * weight.unsqueeze(-1).to(made.dtype)
        return torch.zeros_like(words).index_add(0, chosen.flatten(), made.flatten(0, 1).to(words.dtype)).view_as(x)


class ExpertBlock(nn.Module):
    def __init__(self, width, heads, experts):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out, self.experts = nn.Linear(width, 3 * width), nn.Linear(width, width), Experts(width, 4 * width, experts, 2.0)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.experts(self.norm2(x))


class ExpertModel(nn.Module):
    def __init__(self, words, width, depth, heads, experts, length):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.zeros(length, width))
        self.blocks = nn.Sequential(*(ExpertBlock(width, heads, experts) for _ in range(depth)))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, x):
        return self.out(self.norm(self.blocks(self.words(x) + self.places)))


def experts(batch, length, tiny):
    batch, length = (2, 32) if tiny else (batch, length)
    model = ExpertModel(512, 64, 2, 4, 4, length) if tiny else ExpertModel(32000, 768, 8, 12, 8, length)

    def loss(model, x, y):
        with bfloat16():
            logits = model(x)
        return F.cross_entropy(logits.flatten(0, 1).float(), y.flatten())

    words = model.words.num_embeddings
    return model, loss, [torch.randint(0, words, (batch, length), device="cuda") for _ in range(2)], ["ExpertBlock"]


def with_tf32(tiny):
    """For the process: a loss that sets it would set it behind the back of what compiles or captures the loss."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    return language("GPT-2", 8, 1024, tiny, contextlib.nullcontext, 0.1)


NETWORKS = {
    "GPT-2": lambda tiny: language("GPT-2", 8, 1024, tiny),
    "GPT-2 1x128": lambda tiny: language("GPT-2", 1, 128, tiny, contextlib.nullcontext),
    "GPT-2 TF32": with_tf32,
    "Llama": lambda tiny: language("Llama", 8, 1024, tiny),
    "BERT": lambda tiny: language("BERT", 16, 512, tiny),
    "ResNet-50": lambda tiny: vision("resnet50", 64, 224, tiny, ["Bottleneck", "BasicBlock"]),
    "MobileNetV2": lambda tiny: vision("mobilenet_v2", 64, 224, tiny, ["InvertedResidual"]),
    "ViT": lambda tiny: vision("vit_b_16", 32, 224, tiny, ["EncoderBlock"]),
    "U-Net": lambda tiny: unet(8, 256, tiny),
    "MoE": lambda tiny: experts(8, 1024, tiny),
}


def make(name, tiny=False):
    """The same network each time, on the GPU."""
    torch.manual_seed(0)
    model, loss, batch, blocks = NETWORKS[name](tiny)
    return model.to("cuda").train(), loss, batch, blocks
