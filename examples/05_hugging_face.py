"""
Hugging Face: a small transformer
=================================

A function makes the ``Trainer``; an epoch of the search is so many steps of it. The
model is a BERT of one layer with random weights, so nothing is downloaded. It learns
whether most tokens of a sequence are even numbers.
"""

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
)

from risingsearch import RisingSearch
from risingsearch.integrations.torch.huggingface import HuggingFaceTrainable

rng = np.random.default_rng(0)
tokens = rng.integers(2, 20, size=(400, 7))
even = (tokens % 2 == 0).sum(axis=1)
rows = [
    {"input_ids": row, "labels": int(number > 3)}
    for row, number in zip(tokens, even, strict=True)
]


def accuracy(predicted):
    guesses = predicted.predictions.argmax(axis=1)
    return {"accuracy": float((guesses == predicted.label_ids).mean())}


def make_trainer(params, seed, folder):
    torch.manual_seed(seed)
    size = params["size"]
    config = BertConfig(
        vocab_size=20,
        hidden_size=size,
        intermediate_size=2 * size,
        num_hidden_layers=1,
        num_attention_heads=2,
        hidden_dropout_prob=0.0,
    )
    arguments = TrainingArguments(
        output_dir=folder,
        seed=seed,
        num_train_epochs=4,
        learning_rate=params["lr"],
        per_device_train_batch_size=25,
        per_device_eval_batch_size=100,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        logging_strategy="no",
    )
    return Trainer(
        BertForSequenceClassification(config),
        arguments,
        train_dataset=rows[:300],
        eval_dataset=rows[300:],
        compute_metrics=accuracy,
    )


candidates = [
    {"lr": lr, "size": size} for lr in (1e-4, 1e-3, 1e-2) for size in (16, 32)
]
search = RisingSearch(
    HuggingFaceTrainable(make_trainer, monitor="eval_accuracy", n_steps=6),
    candidates,
    budget=16,
    max_epochs=8,
    seed=0,
)
result = search.run()
print(f"accuracy {result.best_score:.2f} with {result.best_params}")

# %%
# The curves, an epoch being six steps.

labels = {
    arm: f"lr {params['lr']:g}, size {params['size']}"
    for arm, params in enumerate(candidates)
}
result.plot_curves(labels=labels)
