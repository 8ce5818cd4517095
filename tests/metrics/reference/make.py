#!/usr/bin/env python3
"""Writes scikit_learn.txt: what scikit-learn says about a few predictions. Needs scikit-learn; the file is of 1.9.

A line is a name, then numbers.
"""
from pathlib import Path

import numpy as np
from sklearn import metrics

gen = np.random.default_rng(5)
classes, n = 4, 60
labels = gen.choice(classes - 1, n, p=[0.6, 0.3, 0.1])  # class 3 is never a label
scores = np.round(gen.normal(size=(n, classes)) + np.eye(classes)[labels], 1)  # with ties
lines = []


def put(name, values):
    lines.append(" ".join([name, *(repr(float(v)) for v in np.asarray(values, dtype=float).ravel())]))


everything = range(classes)
predicted = scores.argmax(1)
put("labels", labels)
put("scores", scores)
put("accuracy", metrics.accuracy_score(labels, predicted))
# A label among the k first in the order of falling scores, equal ones by class.
ranks = np.array([np.argsort(-row, kind="stable").tolist().index(label) for row, label in zip(scores, labels)])
distinct = scores + np.arange(classes, 0, -1) * 1e-6  # as scikit-learn has ties in no documented order
for k in (2, 3):
    value = metrics.top_k_accuracy_score(labels, distinct, k=k, labels=everything)
    assert value == (ranks < k).mean()
    put(f"top{k}", value)
put("confusion", metrics.confusion_matrix(labels, predicted, labels=everything))
for name, score in (("precision", metrics.precision_score), ("recall", metrics.recall_score), ("f1", metrics.f1_score)):
    for average in ("micro", "macro", "weighted", None):
        put(f"{name}_{average or 'each'}", score(labels, predicted, labels=everything, average=average, zero_division=0))
    put(f"{name}_binary", score(labels == 1, predicted == 1))
put("auc_binary", metrics.roc_auc_score(labels == 1, scores[:, 1]))
three = scores[:, :3]
put("auc_classes", np.mean([metrics.roc_auc_score(labels == c, three[:, c]) for c in range(3)]))
probabilities = np.exp(three) / np.exp(three).sum(1, keepdims=True)
put("probabilities", probabilities)
put("auc_probabilities", metrics.roc_auc_score(labels, probabilities, multi_class="ovr"))
put("perplexity", np.exp(metrics.log_loss(labels, np.exp(scores) / np.exp(scores).sum(1, keepdims=True), labels=everything)))
targets = np.round(gen.normal(size=(20, 3)) + 1000, 2)
targets[:, 2] = 7
guesses = np.round(targets + gen.normal(size=(20, 3)), 2)
put("targets", targets)
put("guesses", guesses)
put("r2_each", metrics.r2_score(targets, guesses, multioutput="raw_values"))
put("r2", metrics.r2_score(targets, guesses))
put("r2_first", metrics.r2_score(targets[:, 0], guesses[:, 0]))
Path(__file__).with_name("scikit_learn.txt").write_text("\n".join(lines) + "\n")
