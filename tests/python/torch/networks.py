"""Networks to train and to export, from small to as large as their papers have them. A network is
(model, make a batch); the loss is loss_of."""
import torch
import torch.nn.functional as F
from torch import nn

OLDER = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 12)  # Dynamo traces less



def loss_of(model, *batch):
    output, target = model(*batch[:-1]), batch[-1]
    if output.shape == target.shape:
        return F.mse_loss(output, target)
    return F.cross_entropy(output.flatten(0, -2), target.flatten())


def eager_step(model, optimizer, *batch, clip=None, loss_fn=loss_of):
    """A training step as PyTorch runs it; returns the loss."""
    loss = loss_fn(model, *batch)
    loss.backward()
    if clip:
        clip(list(model.parameters()))
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


# ---- Transformers ----

class Block(nn.Module):
    def __init__(self, width, heads, dropout, causal):
        super().__init__()
        self.heads, self.dropout, self.causal = heads, dropout, causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        if self.causal:
            mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
            scores = scores.masked_fill(~mask, float("-inf"))
        scores = F.dropout(scores.softmax(-1), self.dropout, self.training)
        x = x + self.proj((scores @ v).transpose(1, 2).reshape(batch, length, width))
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)))), self.dropout, self.training)


class Transformer(nn.Module):
    """Of words (GPT: causal, BERT: not), or of an image's patches (ViT)."""

    def __init__(self, words, width, layers, heads, length, dropout=0.0, causal=True, patch=0):
        super().__init__()
        self.patch = nn.Conv2d(3, width, patch, patch) if patch else None
        self.word = None if patch else nn.Embedding(words, width)
        self.place = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads, dropout, causal) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) if self.patch else self.word(x)
        x = self.blocks(x + self.place(torch.arange(x.shape[1], device=x.device)))
        x = self.head(self.norm(x))
        return x.mean(1) if self.patch else x


# ---- Convolutions ----

def conv(inputs, outputs, kernel=3, stride=1, groups=1, relu=nn.ReLU):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([relu(inplace=True)] if relu else []))


class Residual(nn.Module):
    def __init__(self, body, shortcut=None, relu=True):
        super().__init__()
        self.body, self.shortcut, self.relu = body, shortcut, relu

    def forward(self, x):
        y = self.body(x) + (self.shortcut(x) if self.shortcut else x)
        return F.relu(y, inplace=True) if self.relu else y


def resnet(depths, bottleneck, width=64, classes=1000):
    layers, inputs = [conv(3, width, 7, 2), nn.MaxPool2d(3, 2, 1)], width
    for stage, depth in enumerate(depths):
        inner = width << stage
        outputs = inner * 4 if bottleneck else inner
        for i in range(depth):
            stride = 2 if stage and i == 0 else 1
            if bottleneck:
                body = nn.Sequential(conv(inputs, inner, 1), conv(inner, inner, 3, stride),
                                     conv(inner, outputs, 1, relu=None))
            else:
                body = nn.Sequential(conv(inputs, inner, 3, stride),
                                     conv(inner, outputs, relu=None))
            same = stride == 1 and inputs == outputs
            layers.append(Residual(body, None if same else conv(inputs, outputs, 1, stride,
                                                                relu=None)))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


def mobilenet_v2(classes=1000):
    layers, inputs = [conv(3, 32, 3, 2, relu=nn.ReLU6)], 32
    for expand, outputs, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2),
                                           (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                           (6, 320, 1, 1)):
        for i in range(count):
            inner, step = inputs * expand, stride if i == 0 else 1
            body = nn.Sequential(*([conv(inputs, inner, 1, relu=nn.ReLU6)] if expand > 1 else []),
                                 conv(inner, inner, 3, step, inner, nn.ReLU6),
                                 conv(inner, outputs, 1, relu=None))
            same = step == 1 and inputs == outputs
            layers.append(Residual(body, relu=False) if same else body)
            inputs = outputs
    return nn.Sequential(*layers, conv(320, 1280, 1, relu=nn.ReLU6), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(1280, classes))


class Dense(nn.Module):
    def __init__(self, inputs, count, growth=32):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(inputs + i * growth), nn.ReLU(),
                          conv(inputs + i * growth, 4 * growth, 1),
                          nn.Conv2d(4 * growth, growth, 3, 1, 1, bias=False))
            for i in range(count))

    def forward(self, x):
        found = [x]
        for layer in self.layers:
            found.append(layer(torch.cat(found, 1)))
        return torch.cat(found, 1)


def densenet(depths=(6, 12, 24, 16), classes=1000):
    layers, width = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
    for i, depth in enumerate(depths):
        layers.append(Dense(width, depth))
        width += 32 * depth
        if i + 1 < len(depths):
            layers += [conv(width, width // 2, 1), nn.AvgPool2d(2)]
            width //= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))


class Inception(nn.Module):
    def __init__(self, inputs, one, three, five, pool):
        super().__init__()
        self.branches = nn.ModuleList([
            conv(inputs, one, 1),
            nn.Sequential(conv(inputs, three[0], 1), conv(*three)),
            nn.Sequential(conv(inputs, five[0], 1), conv(*five)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(inputs, pool, 1))])

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


def googlenet(classes=1000):
    rows = [(192, 64, (96, 128), (16, 32), 32), (256, 128, (128, 192), (32, 96), 64), None,
            (480, 192, (96, 208), (16, 48), 64), (512, 160, (112, 224), (24, 64), 64),
            (512, 128, (128, 256), (24, 64), 64), (512, 112, (144, 288), (32, 64), 64),
            (528, 256, (160, 320), (32, 128), 128), None,
            (832, 256, (160, 320), (32, 128), 128), (832, 384, (192, 384), (48, 128), 128)]
    stem = [conv(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1), conv(64, 64, 1), conv(64, 192),
            nn.MaxPool2d(3, 2, 1)]
    body = [Inception(*row) if row else nn.MaxPool2d(3, 2, 1) for row in rows]
    return nn.Sequential(*stem, *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(1024, classes))


class UNet(nn.Module):
    def __init__(self, width=32, depth=4):
        super().__init__()
        widths = [width << i for i in range(depth + 1)]

        def double(inputs, outputs):
            return nn.Sequential(conv(inputs, outputs), conv(outputs, outputs))

        self.down = nn.ModuleList(double(i, o) for i, o in zip([3] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[-2::-1])
        self.join = nn.ModuleList(double(2 * w, w) for w in widths[-2::-1])
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        kept = []
        for i, down in enumerate(self.down):
            x = down(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        kept.pop()
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([kept.pop(), up(x)], 1))
        return self.out(x)


# ---- By name ----

def _words(count, batch, length):
    return lambda: (torch.randint(0, count, (batch, length)),
                    torch.randint(0, count, (batch, length)))


def _images(batch, size, classes=1000):
    return lambda: (torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,)))


def _masks(batch, size):
    return lambda: (torch.randn(batch, 3, size, size), torch.randn(batch, 1, size, size))


NETWORKS = {
    # for tests
    "small_gpt": (lambda: Transformer(500, 64, 2, 4, 32, 0.1), _words(500, 4, 32)),
    "small_resnet": (lambda: resnet((1, 1, 1), False, 16, 10), _images(4, 32, 10)),
    # for tables
    "ResNet-50": (lambda: resnet((3, 4, 6, 3), True), _images(8, 64)),
    "ResNet-18": (lambda: resnet((2, 2, 2, 2), False), _images(16, 64)),
    "GPT, 6 layers": (lambda: Transformer(8000, 384, 6, 6, 256, 0.1), _words(8000, 2, 256)),
    "BERT-base": (lambda: Transformer(8000, 768, 12, 12, 128, 0.1, causal=False),
                  _words(8000, 1, 128)),
    "ViT": (lambda: Transformer(1000, 384, 12, 6, 196, 0.1, causal=False, patch=16),
            _images(2, 224)),
    "U-Net": (lambda: UNet(16), _masks(2, 128)),
    "MobileNetV2": (mobilenet_v2, _images(8, 64)),
    "DenseNet-121": (densenet, _images(4, 64)),
}


def make(name):
    """(model, function that makes a batch); the same model each time."""
    torch.manual_seed(0)
    model, batch = NETWORKS[name]
    return model(), batch


EXPORTED = {
    # for tests
    "tiny GoogLeNet": (lambda: googlenet(10), (1, 3, 32, 32)),
    "tiny GPT": (lambda: Transformer(100, 32, 2, 2, 128), 100),
    # for tables
    "ResNet-18": (lambda: resnet((2, 2, 2, 2), False), (1, 3, 224, 224)),
    "ResNet-50": (lambda: resnet((3, 4, 6, 3), True), (1, 3, 224, 224)),
    "MobileNetV2": (mobilenet_v2, (1, 3, 224, 224)),
    "GoogLeNet": (googlenet, (1, 3, 224, 224)),
    "DenseNet-121": (densenet, (1, 3, 224, 224)),
    "U-Net": (UNet, (1, 3, 128, 128)),
    "GPT, 6 layers": (lambda: Transformer(8000, 256, 6, 4, 256), 8000),
    "BERT-base": (lambda: Transformer(8000, 768, 12, 12, 128, causal=False), 8000),
    "ViT": (lambda: Transformer(1000, 192, 12, 3, 196, causal=False, patch=16), (1, 3, 224, 224)),
    "MLP": (lambda: nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(),
                                  nn.Linear(256, 10)), (1, 784)),
}


def make_exported(name):
    """(model in evaluation mode, example inputs)"""
    torch.manual_seed(0)
    model, shape = EXPORTED[name]
    if isinstance(shape, int):
        return model().eval(), (torch.randint(0, shape, (1, 128)),)
    return model().eval(), (torch.randn(shape),)
