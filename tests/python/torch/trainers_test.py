"""tarn.torch.step inside of Hugging Face's Trainer and accelerate, as they are: the examples of docs/pytorch.md, against the
same loops in eager execution. TAP on stdout.

    TARN_REQUIRE=torch-models tests/with_torch.sh --models tests/python/torch/trainers_test.py SOURCE"""
import copy
import os
import re
import sys
import tempfile
import textwrap
from pathlib import Path

os.environ.setdefault("ACCELERATE_USE_CPU", "true")

import torch  # pylint: disable=wrong-import-position
import transformers as hf  # pylint: disable=wrong-import-position
from accelerate import Accelerator  # pylint: disable=wrong-import-position
from cases import run  # pylint: disable=wrong-import-position

SOURCE = Path(sys.argv[1])
torch.set_num_threads(1)
hf.logging.set_verbosity_error()


def example(title):
    """The code under a heading of docs/pytorch.md."""
    text = (SOURCE / "docs/pytorch.md").read_text(encoding="utf-8").split(f"\n### {title}\n")[1]
    text = re.split(r"\n##+ ", text)[0]
    return textwrap.dedent("\n".join(line for line in text.splitlines()
                                     if line.startswith("    ") and not line.strip().startswith("$ ")
                                     or not line))


def model():
    torch.manual_seed(0)
    return hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=200, n_positions=32, n_embd=32, n_layer=2, n_head=2))


def rows(count=16):
    torch.manual_seed(1)
    words = torch.randint(0, 200, (count, 16))
    return [{"input_ids": row, "labels": row} for row in words]


def same(one, two):
    return all(map(torch.equal, one.parameters(), two.parameters()))


def the_trainer_trains_by_planned_steps():
    space = {}
    exec(example("Hugging Face's Trainer"), space)  # pylint: disable=exec-used
    trained = []
    for kind in (hf.Trainer, space["PlannedTrainer"]):
        own = model()
        with tempfile.TemporaryDirectory() as folder:
            settings = hf.TrainingArguments(folder, per_device_train_batch_size=4, num_train_epochs=2, report_to=[], use_cpu=True, max_grad_norm=0,
                                            logging_steps=1, save_strategy="no", optim="adamw_torch", lr_scheduler_type="linear", warmup_steps=2)
            trainer = kind(own, settings, train_dataset=rows())
            trainer.train()
        trained.append((own, [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]))
    assert trainer.step.reason is None and trainer.step.plan, trainer.step.reason
    assert trained[0][1] == trained[1][1] and same(trained[0][0], trained[1][0]), (trained[0][1], trained[1][1])


def accelerate_trains_by_planned_steps():
    space = {}
    exec(example("accelerate"), space)  # pylint: disable=exec-used
    one = model()
    two = copy.deepcopy(one)
    loader = torch.utils.data.DataLoader(rows(), batch_size=4)
    torch.manual_seed(3)
    step = space["train"](Accelerator(cpu=True), one, torch.optim.AdamW(one.parameters(), lr=1e-3), loader)
    optimizer = torch.optim.AdamW(two.parameters(), lr=1e-3)
    torch.manual_seed(3)
    for batch in loader:
        two(**batch).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert step.reason is None and step.plan and same(one, two), step.reason


if __name__ == "__main__":
    run([the_trainer_trains_by_planned_steps, accelerate_trains_by_planned_steps])
